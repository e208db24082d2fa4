package watchstream_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/internal/watchstream"
)

func TestFrames(t *testing.T) {
	frames := []watchstream.Frame{
		{Op: watchstream.Begin, Kind: 3},
		{Op: watchstream.Put, Kind: 0, Revision: 1 << 40, Name: "team/web", Object: []byte("object")},
		{Op: watchstream.Put, Kind: 1, Revision: 8, Name: "large", Object: bytes.Repeat([]byte("x"), 1<<20)},
		{Op: watchstream.Same, Kind: 0, Revision: 7, Name: "team/web"},
		{Op: watchstream.Listed, Kind: 3, Revision: 9},
		{Op: watchstream.Gone, Kind: 2, Revision: 10, Name: "node"},
	}
	var data []byte
	for _, frame := range frames {
		data = frame.Append(data)
	}
	reader := watchstream.NewReader(bytes.NewReader(data))
	for _, want := range frames {
		got, err := reader.Next()
		if len(got.Object) == 0 {
			got.Object = nil
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %d of kind %d, %q (%v), want %d of kind %d, %q", got.Op, got.Kind, got.Name, err, want.Op, want.Kind, want.Name)
		}
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v at the end, want EOF", err)
	}
}

func TestFramesThatNoHostSends(t *testing.T) {
	valid := watchstream.Frame{Op: watchstream.Put, Revision: 300, Name: "team/web"}.Append(nil)
	with := func(change func(data []byte)) []byte {
		data := bytes.Clone(valid)
		change(data)
		return data
	}
	for name, data := range map[string][]byte{
		"too large":           with(func(data []byte) { binary.BigEndian.PutUint32(data, watchstream.MaxFrame+1) }),
		"empty":               {0, 0, 0, 0},
		"without a kind":      {0, 0, 0, 1, 1},
		"cut":                 valid[:len(valid)-1],
		"unknown operation":   with(func(data []byte) { data[4] = 99 }),
		"no operation":        with(func(data []byte) { data[4] = 0 }),
		"name that is longer": with(func(data []byte) { data[8] = 100 }),
		"without a revision":  {0, 0, 0, 2, 2, 0},
		"negative revision":   append([]byte{0, 0, 0, 12, 2, 0}, bytes.Repeat([]byte{0xff}, 10)...),
	} {
		if _, err := watchstream.NewReader(bytes.NewReader(data)).Next(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("a frame that is %s: got %v, want an error", name, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(watchstream.Frame{Op: watchstream.Put, Revision: 300, Name: "team/web", Object: []byte("x")}.Append(nil))
	f.Fuzz(func(_ *testing.T, data []byte) {
		reader := watchstream.NewReader(bytes.NewReader(data))
		for {
			if _, err := reader.Next(); err != nil {
				return
			}
		}
	})
}

func TestQuery(t *testing.T) {
	kinds := []watchstream.Kind{
		{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
		{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Metadata: true},
		{
			Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Metadata: true, Since: 12,
			Selector: labels.SelectorFromSet(labels.Set{"a": "b", "c": "d"}),
		},
	}
	got, err := watchstream.ParseQuery(watchstream.Query(kinds))
	if err != nil || len(got) != len(kinds) {
		t.Fatalf("got %v, %v", got, err)
	}
	for i := range kinds {
		if got[i].Resource != kinds[i].Resource || got[i].Metadata != kinds[i].Metadata || got[i].Since != kinds[i].Since {
			t.Errorf("got %v, want %v", got[i], kinds[i])
		}
	}
	if got[2].Selector.String() != "a=b,c=d" || got[0].Selector != nil {
		t.Errorf("got selectors %v and %v", got[2].Selector, got[0].Selector)
	}
	if watchstream.Query(kinds).Get("watch") == "" {
		t.Error("the request is not a watch")
	}
}

func TestQueriesThatAreRejected(t *testing.T) {
	for _, query := range []string{
		"", "kind=pods", "kind=/v1/", "kind=//pods", "kind=a/v1/b/c", "kind=/v1/pods?since=x", "kind=/v1/pods?labels=%253D%253D",
		"kind=/v1/pods&kind=/v1/pods", strings.Repeat("kind=/v1/pods&", 1) + strings.Repeat("kind=a/v1/b&", watchstream.MaxKinds),
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if kinds, err := watchstream.ParseQuery(values); err == nil {
			t.Errorf("%s: got %v, want an error", query, kinds)
		}
	}
}

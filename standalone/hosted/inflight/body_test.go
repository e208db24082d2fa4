package inflight

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/virtualcluster/virtualcluster/internal/nesting"
	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
)

const (
	jsonType     = "application/json"
	yamlType     = "application/apply-patch+yaml"
	protobufType = "application/vnd.kubernetes.protobuf"
)

// many is the number of elements of large bodies.
const many = 1000

// podOfMany returns a pod with many containers that have nothing.
func podOfMany() *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "many"}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, many)},
	}
}

// inProtobuf encodes an object as clients do.
func inProtobuf(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	buffer := &bytes.Buffer{}
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, buffer); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func inJSON(t *testing.T, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestElements(t *testing.T) {
	text := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Data: map[string]string{"a": strings.Repeat(`{"a":[null,{}]}`+"\n", many)}}
	strange := "* a & b\n  " + strings.Repeat("{}, ", many)
	for name, test := range map[string]struct {
		body        []byte
		kind        string
		least, most int
	}{
		"nothing":                     {nil, jsonType, 0, 0},
		"containers":                  {inJSON(t, podOfMany()), jsonType, many, 3 * many},
		"containers that are empty":   {[]byte(`{"spec":{"containers":[` + strings.Repeat("{},", many) + `{}]}}`), jsonType, many, many + 10},
		"containers that are null":    {[]byte(`{"spec":{"containers":[` + strings.Repeat("null,", many) + `{}]}}`), jsonType, many, many + 10},
		"text":                        {inJSON(t, text), jsonType, 2, 10},
		"text with quotes":            {[]byte(`{"a":"\"{{{\\"}`), jsonType, 1, 1},
		"text without an end":         {[]byte(`{"a":"\`), jsonType, 1, 1},
		"a type with a parameter":     {inJSON(t, podOfMany()), jsonType + ";charset=utf-8", many, 3 * many},
		"YAML with a wrong parameter": {[]byte("spec:\n  containers:\n" + strings.Repeat("  -\n", many)), yamlType + ";;=", many, many + 10},
		"no type":                     {inJSON(t, podOfMany()), "", many, 3 * many},
		"JSON that is called YAML":    {inJSON(t, text), yamlType, 2, 10},
		"YAML":                        {[]byte("spec:\n  containers:\n" + strings.Repeat("  -\n", many)), yamlType, many, many + 10},
		"YAML in one line":            {[]byte("spec: {containers: [" + strings.Repeat("~,", many) + "]}"), yamlType, many, many + 10},
		"YAML with aliases":           {[]byte("a: &a [" + strings.Repeat("~,", many) + "]\nb: [*a, *a]"), yamlType, 3 * many, 3*many + 10},
		"YAML that looks like it":     {[]byte("a: |\n  " + strange), yamlType, 1, 1},
		"containers in protobuf":      {inProtobuf(t, podOfMany()), protobufType, many, 3 * many},
		"text in protobuf":            {inProtobuf(t, text), protobufType, 0, 10},
		"protobuf that is none":       {[]byte(nesting.ProtobufPrefix + "\xff\xff"), protobufType, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := &body{mediaType: test.kind, types: nesting.TypesOf(scheme.Scheme), info: &apirequest.RequestInfo{}}
			if got, err := b.check(test.body); got < test.least || got > test.most || err != nil {
				t.Errorf("got %d, want %d to %d: %v", got, test.least, test.most, err)
			}
		})
	}
}

// TestAssumedKinds: a body that does not say its kind is counted as that of the
// request.
func TestAssumedKinds(t *testing.T) {
	const many = 100
	types := nesting.TypesOf(scheme.Scheme, metainternalversionscheme.Scheme)
	pods := nestingtest.Object("", "", nestingtest.In(bytes.Repeat(nestingtest.In(nil, 2), many), 2))
	for name, test := range map[string]struct {
		info apirequest.RequestInfo
		want int
	}{
		"a pod":               {apirequest.RequestInfo{Verb: "create", APIVersion: "v1", Resource: "pods"}, 1 + many},
		"its status":          {apirequest.RequestInfo{Verb: "update", APIVersion: "v1", Resource: "pods", Subresource: "status"}, 1 + many},
		"options":             {apirequest.RequestInfo{Verb: "delete", APIVersion: "v1", Resource: "pods"}, 1},
		"a resource not here": {apirequest.RequestInfo{Verb: "create", APIGroup: "example.com", APIVersion: "v1", Resource: "pods"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := &body{mediaType: protobufType, types: types, info: &test.info}
			if got, err := b.check(pods); got != test.want || err != nil {
				t.Errorf("got %d, want %d: %v", got, test.want, err)
			}
		})
	}
}

// TestBodies: the elements of a body count while the request is in flight, and
// the handler reads what the client has sent.
func TestBodies(t *testing.T) {
	const many = 20_000
	for name, test := range map[string]struct {
		body string
		held int64
		code int
	}{
		"small":             {`{"a":1}`, baseCost + elementCost, http.StatusOK},
		"many elements":     {"[" + strings.Repeat("{},", many) + "{}]", baseCost + (many+2)*elementCost, http.StatusOK},
		"too many elements": {"[" + strings.Repeat("{},", mostElements) + "{}]", 0, http.StatusRequestEntityTooLarge},
		"too deep":          {strings.Repeat("[", 200), 0, http.StatusRequestEntityTooLarge},
		"too long":          {strings.Repeat("{", longestBody+10), baseCost + longestBody*bodyFactor, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := newHost(math.MaxInt64).Add("a", Config{})
			handler := filterOf(always(tenant)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, err := io.ReadAll(r.Body)
				if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
					w.WriteHeader(int(status.Status().Code))
					return
				}
				if string(data) != test.body || err != nil {
					t.Errorf("the handler read %d bytes of %d: %v", len(data), len(test.body), err)
				}
				if held := tenant.Usage().Bytes; held != test.held {
					t.Errorf("the request holds %d bytes, want %d", held, test.held)
				}
			}))
			answer := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/namespaces/a/pods", strings.NewReader(test.body))
			r.Header.Set("Content-Type", jsonType)
			handler.ServeHTTP(answer, r)
			if answer.Code != test.code || tenant.Usage().Bytes != 0 {
				t.Errorf("got %d, want %d; %d bytes are held", answer.Code, test.code, tenant.Usage().Bytes)
			}
		})
	}
}

func TestABodyWithoutMemoryIsRejected(t *testing.T) {
	b := &body{
		ReadCloser: io.NopCloser(strings.NewReader("[" + strings.Repeat("{},", 1000) + "{}]")), mediaType: jsonType, info: &apirequest.RequestInfo{},
		grow: func(int64) bool { return false },
	}
	for range 2 { // readers ask again
		if _, err := b.Read(make([]byte, 1)); !apierrors.IsTooManyRequests(err) {
			t.Errorf("got %v", err)
		}
	}
}

// TestABodyThatBreaks is the reader's to report.
func TestABodyThatBreaks(t *testing.T) {
	b := &body{ReadCloser: io.NopCloser(io.MultiReader(strings.NewReader("{"), broken{})), grow: func(int64) bool { return true }}
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

package convert

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// errHidden is an object that the tenant does not see.
var errHidden = errors.New("the tenant does not see the object")

// watchEvents writes the events of a watch until it ends, converted one by one,
// after those of objects that are added first. It leaves out those of hidden
// objects.
func watchEvents(w http.ResponseWriter, response *http.Response, converter *document.Response, first ...document.Object) {
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // the client waits for the headers
	for _, object := range first {
		if err := converter.Finish(object); err != nil {
			return
		}
		data, err := document.Write(object)
		if err != nil || writeEvent(w, watch.Added, data) != nil {
			return
		}
	}
	_ = flush.Flush()
	events := document.NewEvents(response.Body)
	for {
		kind, object, ok := events.Next()
		if !ok {
			return // it has ended
		}
		kind, object, converted := turn(kind, object, converter)
		if object == nil {
			continue
		}
		if writeEvent(w, watch.EventType(kind), object) != nil || flush.Flush() != nil || !converted {
			return
		}
	}
}

// writeEvent writes an event with the text of an object.
func writeEvent(w io.Writer, kind watch.EventType, object []byte) error {
	return json.NewEncoder(w).Encode(struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}{kind, object})
}

// turn converts an event. One that cannot be converted ends the watch, so that
// the client lists again. One of a hidden object has no object.
func turn(kind string, object []byte, converter *document.Response) (string, []byte, bool) {
	data, err := converter.Document(object)
	if errors.Is(err, errHidden) {
		return kind, nil, true
	}
	if err != nil {
		data, _ = json.Marshal(expired()) //nolint:errchkjson // a Status
		return string(watch.Error), data, false
	}
	return kind, data, true
}

// expired is the Status by which a client lists again.
func expired() metav1.Status {
	status := apierrors.NewResourceExpired("an object cannot be converted: list again").Status()
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

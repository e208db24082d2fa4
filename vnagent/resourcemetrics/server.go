package resourcemetrics

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unavailable is the message for a tenant when the super cluster does not
// respond, or has no measurements.
const unavailable = "the usage of pods and nodes is not known now; try again, and tell the platform's admin if it stays so"

// Tenant is whose apiserver asks.
type Tenant struct {
	// Key is the cluster key, Namespace and Name the VirtualCluster's, and UID,
	// too.
	Key, Namespace, Name string
	UID                  types.UID
}

// Server answers with what it reads of the super cluster at each request.
type Server struct {
	// Super reads the super cluster around any cache. Its scheme has the API.
	Super client.Reader
}

// Serve answers a request, and returns the status code. An error is what is not
// for the tenant to read; it has been answered, too.
func (s Server) Serve(w http.ResponseWriter, r *http.Request, of Tenant) (int, error) {
	answer, err := s.answer(r, of)
	code := http.StatusOK
	if err != nil {
		said, ok := errors.AsType[*refusal](err)
		if ok {
			err = nil
		} else {
			said = &refusal{apierrors.NewServiceUnavailable(unavailable)}
		}
		status := said.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer, code = &status, int(status.Code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	return code, errors.Join(err, json.NewEncoder(w).Encode(answer))
}

// refusal is an error response, with a message for the tenant, and without the
// super cluster's errors.
type refusal struct{ *apierrors.StatusError }

func (s Server) answer(r *http.Request, of Tenant) (any, error) {
	if description := descriptions[r.URL.EscapedPath()]; description != "" {
		return json.RawMessage(description), nil
	}
	asked, ok := parseRequest(r.URL)
	resource := metricsv1beta1.Resource(asked.resource)
	query := r.URL.Query()
	switch {
	case !ok:
		return nil, &refusal{apierrors.NewNotFound(resource, "")}
	case r.Method != http.MethodGet || query.Get("watch") == "true" || query.Get("watch") == "1":
		return nil, &refusal{apierrors.NewMethodNotSupported(resource, "anything but get and list")}
	case asked.resource == "":
		return discovery(), nil
	}
	return s.measure(r.Context(), asked, query, of)
}

// measure answers what is used.
func (s Server) measure(ctx context.Context, asked request, query url.Values, of Tenant) (any, error) {
	selected, err := selectionOf(asked, query)
	if err != nil {
		return nil, &refusal{apierrors.NewBadRequest(err.Error())}
	}
	found, measured, err := source{super: s.Super, tenant: of, namespace: asked.namespace}.read(ctx, asked.resource == nodes)
	if err != nil {
		return nil, err
	}
	if asked.resource == nodes {
		return oneOrAll(asked, nodeMetrics(found, selected, measured), nodeObject, nodeList)
	}
	return oneOrAll(asked, podMetrics(found, selected, measured), podObject, podList)
}

// oneOrAll returns the object with the requested name, or a list.
func oneOrAll[T any](asked request, items []T, object func(T) runtime.Object, list func([]T) runtime.Object) (any, error) {
	switch {
	case asked.name == "":
		return list(items), nil
	case len(items) == 0:
		return nil, &refusal{apierrors.NewNotFound(metricsv1beta1.Resource(asked.resource), asked.name)}
	default:
		return object(items[0]), nil
	}
}

package hosted

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// failingStorage fails each request and keeps the purpose of the last write.
type failingStorage struct {
	storage.Interface

	err     error
	purpose *string
}

func (f failingStorage) note(ctx context.Context) error {
	sent, _ := metadata.FromOutgoingContext(ctx)
	*f.purpose = fmt.Sprint(sent["vc-write-purpose"])
	return f.err
}

func (f failingStorage) Create(ctx context.Context, _ string, _, _ runtime.Object, _ uint64) error {
	return f.note(ctx)
}

func (f failingStorage) GuaranteedUpdate(
	ctx context.Context, _ string, _ runtime.Object, _ bool, _ *storage.Preconditions, _ storage.UpdateFunc, _ runtime.Object,
) error {
	return f.note(ctx)
}

func (f failingStorage) Get(context.Context, string, storage.GetOptions, runtime.Object) error {
	return f.err
}

func (f failingStorage) GetList(context.Context, string, storage.ListOptions, runtime.Object) error {
	return f.err
}

// TestErrorsOfEtcdAreExplained: a client learns whether to delete objects, to
// wait, or to call an admin, and nothing of the store behind.
func TestErrorsOfEtcdAreExplained(t *testing.T) {
	rejection := func(text string) error { return status.Error(codes.ResourceExhausted, "rejected by "+text) }
	conflict := errors.New("a conflict")
	for name, test := range map[string]struct {
		err    error
		code   int32
		reason string
		text   string
	}{
		"a limit of the storage": {rejection("storage: limited to 3Mi"), http.StatusForbidden, "Forbidden", `widgets "web" is forbidden: limited to 3Mi`},
		"the limit of the pace":  {rejection("pace: slower"), http.StatusTooManyRequests, "TooManyRequests", "slower"},
		"the store of all":       {rejection("store: the platform is full"), http.StatusInsufficientStorage, "ServiceUnavailable", "the platform is full"},
		"etcd's own quota":       {rpctypes.ErrNoSpace, http.StatusInsufficientStorage, "ServiceUnavailable", "ask the platform's administrator"},
		"etcd's own quota, raw":  {rpctypes.ErrGRPCNoSpace, 0, "", "database space exceeded"},
		"a request too large":    {status.Error(codes.ResourceExhausted, "trying to send message larger than max"), 0, "", "larger than max"},
		"an etcd that is away":   {status.Error(codes.Unavailable, "dial unix /data/etcd: no such file"), http.StatusServiceUnavailable, "ServiceUnavailable", "does not respond"},
		"an etcd without leader": {rpctypes.ErrNoLeader, http.StatusServiceUnavailable, "ServiceUnavailable", "does not respond"},
		"another error":          {conflict, 0, "", conflict.Error()},
		"none":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			var purpose string
			store := explainedStorage{
				Interface: failingStorage{err: test.err, purpose: &purpose}, resource: schema.GroupResource{Resource: "widgets"},
			}
			const key = "/controlplanes/a/widgets/team/web"
			for method, err := range map[string]error{
				"Create":           store.Create(t.Context(), key, nil, nil, 0),
				"GuaranteedUpdate": store.GuaranteedUpdate(t.Context(), key, nil, false, nil, nil, nil),
				"Get":              store.Get(t.Context(), key, storage.GetOptions{}, nil),
				"GetList":          store.GetList(t.Context(), key, storage.ListOptions{}, nil),
			} {
				g := NewWithT(t)
				if test.err == nil {
					g.Expect(err).NotTo(HaveOccurred(), method)
					continue
				}
				g.Expect(err).To(MatchError(ContainSubstring(test.text)), method)
				if explained, ok := errors.AsType[*apierrors.StatusError](err); ok {
					g.Expect(explained.ErrStatus.Code).To(Equal(test.code), method)
					g.Expect(string(explained.ErrStatus.Reason)).To(Equal(test.reason), method)
					g.Expect(err.Error()).NotTo(Or(ContainSubstring("etcd"), ContainSubstring("/controlplanes")), method)
				} else {
					g.Expect(test.code).To(BeZero(), method)
				}
			}
		})
	}
}

// TestPurposeOfAWrite: only requests with the token of the control plane's own
// controllers may exceed a limit, whatever else a client sends.
func TestPurposeOfAWrite(t *testing.T) {
	const token = "own-token"
	request := func(verb, group, namespace string) *apirequest.RequestInfo {
		return &apirequest.RequestInfo{Verb: verb, APIGroup: group, Namespace: namespace}
	}
	const own = "Bearer " + token
	for name, test := range map[string]struct {
		header string
		info   *apirequest.RequestInfo
		want   quota.Purpose
	}{
		"a client creates":                   {"", request("create", "", "team"), quota.Ordinary},
		"a client updates":                   {"Bearer other", request("update", "", "team"), quota.Ordinary},
		"a client with part of the token":    {own[:len(own)-1], request("update", "", "team"), quota.Ordinary},
		"a client with more than the token":  {own + " ", request("update", "", "team"), quota.Ordinary},
		"a client deletes":                   {"", request("delete", "", "team"), quota.Vital},
		"a client deletes a collection":      {"", request("deletecollection", "", "team"), quota.Vital},
		"a controller creates":               {own, request("create", "apps", "team"), quota.Ordinary},
		"a controller updates":               {own, request("update", "", "team"), quota.Upkeep},
		"a controller patches":               {own, request("patch", "", "team"), quota.Upkeep},
		"a controller creates for a cluster": {own, request("create", "", ""), quota.Vital},
		"a controller creates a role":        {own, request("create", "rbac.authorization.k8s.io", "kube-system"), quota.Vital},
		"no request":                         {own, nil, quota.Ordinary},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var purpose string
			store := explainedStorage{Interface: failingStorage{purpose: &purpose}}
			handler := withOrigin(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				ctx := r.Context()
				if test.info != nil {
					ctx = apirequest.WithRequestInfo(ctx, test.info)
				}
				g.Expect(store.Create(ctx, "key", nil, nil, 0)).To(Succeed())
				created := purpose
				g.Expect(store.GuaranteedUpdate(ctx, "key", nil, false, nil, nil, nil)).To(Succeed())
				g.Expect(purpose).To(Equal(created))
			}), token)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			r.Header.Set("Authorization", test.header)
			r.Header.Set("Impersonate-User", "system:apiserver")
			handler.ServeHTTP(httptest.NewRecorder(), r)
			want := "[]"
			if test.want != quota.Ordinary {
				want = fmt.Sprintf("[%s]", test.want)
			}
			g.Expect(purpose).To(Equal(want))
		})
	}
}

// failingGetter has no storage for any resource.
type failingGetter struct{ generic.RESTOptionsGetter }

func (failingGetter) GetRESTOptions(schema.GroupResource, runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{}, errors.New("no such resource")
}

func TestStorageThatCannotBeMade(t *testing.T) {
	_, err := storageGetter{failingGetter{}}.GetRESTOptions(schema.GroupResource{}, nil)
	NewWithT(t).Expect(err).To(MatchError("no such resource"))
}

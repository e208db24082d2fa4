package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/converted/stored"
)

// shelf records a write.
type shelf struct {
	uncounted, full error
	tenant          string
	write           stored.Write
}

func (s *shelf) Counts(schema.GroupResource) error { return s.uncounted }

func (s *shelf) Reserve(tenant string, write stored.Write, _ stored.Amount) error {
	s.tenant, s.write = tenant, write
	return s.full
}

func TestStorage(t *testing.T) {
	const (
		small = `{"metadata":{"uid":"b","resourceVersion":"3"}}`
		large = `{"metadata":{"uid":"b","resourceVersion":"4"},"data":{"a":"b"}}`
		other = `{"metadata":{"uid":"c","labels":{"tenancy.x-k8s.io/converted":"blue"}}}`
	)
	by := func(user, object, old string) admission.Request {
		r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(object)}}}
		r.UserInfo.Username = user
		if old != "" {
			r.Operation, r.OldObject.Raw = admissionv1.Update, []byte(old)
		}
		return r
	}
	crd := func(served string) admission.Request {
		r := by("system:admin", `{"metadata":{"uid":"d"},"spec":{"versions":[{"served":false},{"served":`+served+`}]}}`, "")
		r.Resource = metav1.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		return r
	}
	hooked := crd("true,\"storage\":true")
	hooked.Object.Raw = []byte(strings.Replace(string(hooked.Object.Raw), `"spec":{`, `"spec":{"conversion":{"strategy":"Webhook"},`, 1))
	unlisted := crd("true")
	unlisted.Object.Raw = []byte(strings.Replace(string(unlisted.Object.Raw), `"spec":{`, `"spec":{"conversion":{"strategy":"Webhook"},`, 1))
	const deleted = `"deletionTimestamp":"2026-01-01T00:00:00Z"`
	held := `{"metadata":{"uid":"b","resourceVersion":"3",` + deleted + `,"finalizers":["a/b"]}}`
	released := `{"metadata":{"uid":"b","resourceVersion":"3",` + deleted + `,"annotations":{"a":"bbbbbbbbbbbbbb"}}}`
	graceful := `{"metadata":{"uid":"b","resourceVersion":"3",` + deleted + `,"deletionGracePeriodSeconds":9,"annotations":{"a":"bbbb"}}}`
	namespace := by("system:serviceaccount:red:converted", released, held)
	namespace.Kind.Kind = "Namespace"
	const red = "system:serviceaccount:red:converted"
	const controller = "system:serviceaccount:kube-system:job-controller"
	made := stored.Write{UID: "b", Growth: stored.Amount{Objects: 1, Bytes: int64(len(small))}, Bytes: int64(len(small))}
	for name, tc := range map[string]struct {
		request      admission.Request
		shelf        shelf
		standby, dry bool
		noTenant     bool
		code         int32
		says, tenant string
		write        stored.Write
	}{
		"a creation":                     {request: by(red, small, ""), code: 200, tenant: "red", write: made},
		"a dry run":                      {request: by(red, small, ""), dry: true, code: 200, tenant: "red", write: stored.Write{UID: "b", Growth: made.Growth, Bytes: made.Bytes, Dry: true}},
		"of a controller":                {request: by(controller, other, ""), code: 200, tenant: "blue", write: stored.Write{UID: "c", Growth: stored.Amount{Objects: 1, Bytes: int64(len(other))}, Bytes: int64(len(other))}},
		"with another's label":           {request: by(red, other, ""), code: 200, tenant: "red", write: stored.Write{UID: "c", Growth: stored.Amount{Objects: 1, Bytes: int64(len(other))}, Bytes: int64(len(other))}},
		"a user of that name":            {request: by("red:converted", small, ""), code: 200},
		"the platform's":                 {request: by(controller, small, ""), code: 200},
		"a growing update":               {request: by(red, large, small), code: 200, tenant: "red", write: stored.Write{UID: "b", Version: "3", Growth: stored.Amount{Bytes: int64(len(large) - len(small))}, Bytes: int64(len(large))}},
		"a shrinking update":             {request: by(red, small, large), standby: true, code: 200, tenant: "red", write: stored.Write{UID: "b", Version: "4", Growth: stored.Amount{Bytes: int64(len(small) - len(large))}, Bytes: int64(len(small))}},
		"too much":                       {request: by(red, small, ""), shelf: shelf{full: errors.New("delete some")}, code: 403, says: "delete some", tenant: "red", write: made},
		"standby":                        {request: by(red, small, ""), standby: true, code: 503, says: "this replica"},
		"not counted":                    {request: by(red, small, ""), shelf: shelf{uncounted: errors.New("try again")}, code: 503, says: "try again"},
		"no tenant":                      {request: by(red, small, ""), noTenant: true, code: 503, says: "not known yet"},
		"a CRD":                          {request: crd("true"), code: 200},
		"a CRD that is not served":       {request: crd("false"), code: 403, says: "no version of the CRD is served"},
		"one with a webhook":             {request: hooked, code: 200},
		"one that a webhook lists":       {request: unlisted, code: 403, says: "its stored version is not served"},
		"the last finalizer":             {request: by(red, released, held), shelf: shelf{full: errors.New("delete some")}, code: 200},
		"a deleted one that grows":       {request: by(red, graceful, held), shelf: shelf{full: errors.New("delete some")}, code: 403, says: "delete some", tenant: "red", write: stored.Write{UID: "b", Version: "3", Growth: stored.Amount{Bytes: int64(len(graceful) - len(held))}, Bytes: int64(len(graceful))}},
		"a deleted Namespace that grows": {request: namespace, shelf: shelf{full: errors.New("delete some")}, code: 403, says: "delete some", tenant: "red", write: stored.Write{UID: "b", Version: "3", Growth: stored.Amount{Bytes: int64(len(released) - len(held))}, Bytes: int64(len(released))}},
		"no JSON":                        {request: by(red, "{", ""), code: 400},
		"no JSON in the former":          {request: by(red, small, "{"), code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Storage{Usage: &tc.shelf, Active: func() bool { return !tc.standby }, Limits: func(context.Context, string) (stored.Amount, error) {
				if tc.noTenant {
					return stored.Amount{}, errors.New("secret")
				}
				return stored.Amount{}, nil
			}}
			tc.request.DryRun = &tc.dry
			got := s.Handle(t.Context(), tc.request)
			if got.Allowed != (tc.code == http.StatusOK) || got.Result.Code != tc.code || !strings.Contains(got.Result.Message, tc.says) {
				t.Errorf("got %+v", got.Result)
			}
			if tc.shelf.tenant != tc.tenant || tc.shelf.write != tc.write {
				t.Errorf("%s wrote %+v, want %+v", tc.shelf.tenant, tc.shelf.write, tc.write)
			}
		})
	}
}

func TestStorageLimits(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	_ = tenancyv1alpha1.AddToScheme(scheme)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "red-default", Labels: map[string]string{names.VCName: "red", names.VCNamespace: "team"},
	}}
	of := func(key string, limits *tenancyv1alpha1.ControlPlaneLimits) *tenancyv1alpha1.VirtualCluster {
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Name: "red", Namespace: "team"}}
		vc.Status.ClusterNamespace = key
		if limits != nil {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Limits: limits}
		}
		return vc
	}
	most := stored.Amount{Objects: 10, Bytes: 20}
	for name, tc := range map[string]struct {
		vc   *tenancyv1alpha1.VirtualCluster
		want stored.Amount
	}{
		"the default":       {of("red", nil), most},
		"objects":           {of("red", &tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(5))}), stored.Amount{Objects: 5, Bytes: 20}},
		"bytes":             {of("red", &tenancyv1alpha1.ControlPlaneLimits{Storage: new(resource.MustParse("1Ki"))}), stored.Amount{Objects: 10, Bytes: 1024}},
		"another cluster":   {vc: of("red-2", nil)},
		"no VirtualCluster": {},
	} {
		t.Run(name, func(t *testing.T) {
			clusters := fake.NewClientBuilder().WithScheme(scheme)
			if tc.vc != nil {
				clusters.WithObjects(tc.vc)
			}
			l := StorageLimits{Namespaces: fake.NewClientBuilder().WithObjects(namespace).Build(), VirtualClusters: clusters.Build(), Most: most}
			if got, err := l.Of(t.Context(), "red"); got != tc.want || (err == nil) != (tc.want != stored.Amount{}) {
				t.Errorf("got %+v, %v", got, err)
			}
			if _, err := l.Of(t.Context(), "unknown"); err == nil {
				t.Error("a tenant without a namespace has limits")
			}
		})
	}
}

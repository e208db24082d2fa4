package app

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/servicecidr"
	"github.com/virtualcluster/virtualcluster/internal/names"

	"github.com/virtualcluster/virtualcluster/standalone/datadir"
	"github.com/virtualcluster/virtualcluster/standalone/internal/apitest"
)

var (
	forbidden = apitest.Answer{Status: http.StatusForbidden}
	notCalled = &rest.Config{Host: "not a URL"}
)

// contains fails the test unless an error is as wanted: empty for none.
func contains(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func crdPath(kind string) string {
	return "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + kind + "." + tenancyv1alpha1.GroupVersion.Group
}

// TestInstallCRDs: each CRD is applied and awaited in turn, and what goes wrong
// names the one that it is about.
func TestInstallCRDs(t *testing.T) {
	pending := &apiextensionsv1.CustomResourceDefinition{}
	established := pending.DeepCopy()
	established.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	one, other := crdPath("clusterversions"), crdPath("virtualclusters")
	between := []string{crdPath("controlplanestores"), crdPath("hostedcontrolplanes"), crdPath("projectclaims"), crdPath("projecttemplates")}
	all := []string{"PATCH " + one}
	for _, path := range append(between, other) {
		all = append(all, "PATCH "+path)
	}
	type answers = map[string][]apitest.Answer
	is, becomes := []apitest.Answer{{Object: established}}, []apitest.Answer{{Object: pending}, {Object: pending}, {Object: established}}
	for name, c := range map[string]struct {
		answers answers
		patches []string
		gets    int
		want    string
	}{
		"all are there":       {answers{"PATCH " + one: is, "GET " + one: is, "PATCH " + other: is, "GET " + other: is}, all, 6, ""},
		"two take their time": {answers{"PATCH " + one: is, "GET " + one: becomes, "PATCH " + other: is, "GET " + other: becomes}, all, 10, ""},
		"one is refused":      {answers{"PATCH " + one: {forbidden}}, all[:1], 0, "install CRD clusterversions."},
		"one cannot be read":  {answers{"PATCH " + one: is, "GET " + one: {forbidden}}, all[:1], 1, "install CRD clusterversions."},
		"another is refused":  {answers{"PATCH " + one: is, "GET " + one: is, "PATCH " + other: {forbidden}}, all, 5, "install CRD virtualclusters."},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range between {
				c.answers["PATCH "+path], c.answers["GET "+path] = is, is
			}
			server, super := apitest.Serve(t, c.answers)
			contains(t, installCRDs(t.Context(), super), c.want)
			if got := server.Requests(http.MethodPatch); !slices.Equal(got, c.patches) {
				t.Errorf("applied are %v, want %v", got, c.patches)
			}
			if got := len(server.Requests(http.MethodGet)); got != c.gets {
				t.Errorf("%d reads, want %d", got, c.gets)
			}
		})
	}
	contains(t, installCRDs(t.Context(), notCalled), "a client for CRDs")
	ctx, cancel := context.WithCancel(t.Context())
	_, super := apitest.Serve(t, answers{"PATCH " + one: is, "GET " + one: {{Object: pending, Do: cancel}}})
	contains(t, installCRDs(ctx, super), "context canceled")
}

// TestServeTenantAddresses: the policy that keeps the addresses for tenants is
// applied after them, and they are awaited.
func TestServeTenantAddresses(t *testing.T) {
	const (
		pool    = "/apis/networking.k8s.io/v1/servicecidrs/virtualcluster-tenants"
		kept    = "service-addresses.tenancy.x-k8s.io"
		policy  = "PATCH /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/" + kept
		binding = "PATCH /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/" + kept
	)
	served := func(ready metav1.ConditionStatus) apitest.Answer {
		cidr := &networkingv1.ServiceCIDR{}
		cidr.Spec.CIDRs = []string{servicecidr.DefaultPool}
		cidr.Status.Conditions = []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: ready}}
		return apitest.Answer{Object: cidr}
	}
	becomes := []apitest.Answer{served(metav1.ConditionFalse), served(metav1.ConditionFalse), served(metav1.ConditionTrue)}
	for name, c := range map[string]struct {
		refused string
		patches int
		gets    int
		want    string
	}{
		"all is well":            {"", 3, 3, ""},
		"the pool is refused":    {"PATCH " + pool, 1, 0, "apply *v1.ServiceCIDR virtualcluster-tenants: "},
		"the policy is refused":  {policy, 2, 0, "apply *v1.ValidatingAdmissionPolicy " + kept},
		"the binding is refused": {binding, 3, 0, "apply *v1.ValidatingAdmissionPolicyBinding " + kept},
		"it must not be read":    {"GET " + pool, 3, 1, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			ok := []apitest.Answer{{Object: struct{}{}}}
			answers := map[string][]apitest.Answer{"PATCH " + pool: ok, policy: ok, binding: ok, "GET " + pool: becomes}
			if c.refused != "" {
				answers[c.refused] = []apitest.Answer{forbidden}
			}
			server, super := apitest.Serve(t, answers)
			contains(t, serveTenantAddresses(t.Context(), super, servicecidr.DefaultPool), c.want)
			if patches, gets := len(server.Requests(http.MethodPatch)), len(server.Requests(http.MethodGet)); patches != c.patches || gets != c.gets {
				t.Errorf("%d objects were applied and %d read, want %d and %d", patches, gets, c.patches, c.gets)
			}
		})
	}
	t.Run("another pool is another object", func(t *testing.T) {
		other := served(metav1.ConditionTrue)
		other.Object.(*networkingv1.ServiceCIDR).Spec.CIDRs = []string{"fd00:10::/108"}
		ok, path := []apitest.Answer{{Object: struct{}{}}}, pool+"-fd00-10---108"
		_, super := apitest.Serve(t, map[string][]apitest.Answer{"PATCH " + path: ok, policy: ok, binding: ok, "GET " + path: {other}})
		contains(t, serveTenantAddresses(t.Context(), super, "fd00:10::/108"), "")
	})
	contains(t, serveTenantAddresses(t.Context(), notCalled, servicecidr.DefaultPool), "a client for Service addresses")
}

// TestAddTenants: both are created and awaited, their kubeconfigs are written
// for their owner alone, and a user reads what to type next only if all of that
// went well.
func TestAddTenants(t *testing.T) {
	const (
		base   = "/apis/tenancy.x-k8s.io/v1alpha1"
		create = "POST " + base + "/namespaces/default/virtualclusters"
		read   = "GET " + base + "/namespaces/default/virtualclusters/"
		secret = "GET /api/v1/namespaces/root/secrets/" + names.AdminKubeconfigSecret
	)
	tenant := func(ready metav1.ConditionStatus) apitest.Answer {
		vc := &tenancyv1alpha1.VirtualCluster{}
		vc.Status.ClusterNamespace, vc.Status.Message = "root", "no room"
		vc.Status.Conditions = []metav1.Condition{{Type: tenancyv1alpha1.ConditionReady, Status: ready}}
		return apitest.Answer{Object: vc}
	}
	kubeconfig := func(data string) apitest.Answer {
		return apitest.Answer{Object: &corev1.Secret{Data: map[string][]byte{names.AdminKubeconfigKey: []byte(data)}}}
	}
	version := metav1.GroupVersionForDiscovery{GroupVersion: tenancyv1alpha1.GroupVersion.String(), Version: "v1alpha1"}
	tenancy := metav1.APIGroup{
		Name: tenancyv1alpha1.GroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
	const valid = `{"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}],"current-context":"c"}`
	ctx, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx     context.Context
		answers map[string][]apitest.Answer
		spoil   func(t *testing.T, dir *datadir.Dir)
		want    string
	}{
		"all is well":         {answers: nil},
		"they are there":      {answers: map[string][]apitest.Answer{create: {{Status: http.StatusConflict, Object: alreadyExists()}}}},
		"none may be created": {answers: map[string][]apitest.Answer{create: {forbidden}}, want: "create VirtualCluster red"},
		"one may not be read": {answers: map[string][]apitest.Answer{read + "blue": {forbidden}}, want: "VirtualCluster blue is not ready ()"},
		"told to stop": {
			ctx: ctx, want: "VirtualCluster red is not ready (no room): context canceled",
			answers: map[string][]apitest.Answer{read + "red": {tenant(metav1.ConditionFalse), {Object: tenant(metav1.ConditionFalse).Object, Do: cancel}}},
		},
		"no kubeconfig":      {answers: map[string][]apitest.Answer{secret: {forbidden}}, want: "read the kubeconfig of red"},
		"a wrong kubeconfig": {answers: map[string][]apitest.Answer{secret: {kubeconfig("nothing")}}, want: "kubeconfig of red"},
		"a full directory": {want: "write ", spoil: func(t *testing.T, dir *datadir.Dir) {
			t.Helper()
			if err := os.Mkdir(dir.File("blue.kubeconfig"), 0o700); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ready := []apitest.Answer{tenant(metav1.ConditionFalse), tenant(metav1.ConditionTrue)}
			answers := map[string][]apitest.Answer{
				create: {tenant(metav1.ConditionFalse)}, read + "red": ready, read + "blue": ready, secret: {kubeconfig(valid)},
				"GET /api":    {{Object: &metav1.APIVersions{Versions: []string{"v1"}}}},
				"GET /api/v1": {{Object: resources("v1", "secrets", "Secret")}},
				"GET /apis":   {{Object: &metav1.APIGroupList{Groups: []metav1.APIGroup{tenancy}}}},
				"GET " + base: {{Object: resources(version.GroupVersion, "virtualclusters", "VirtualCluster")}},
			}
			maps.Copy(answers, c.answers)
			_, super := apitest.Serve(t, answers)
			dir := openDir(t)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			var out strings.Builder
			contains(t, addTenants(c.ctx, &Instance{Super: super, Dir: dir}, "i:1", &out), c.want)
			if advised := strings.Contains(out.String(), "cd "+dir.Path()+"\n"); advised != (c.want == "") {
				t.Errorf("it said %q", &out)
			}
			for _, name := range []string{"red", "blue"} {
				info, err := os.Stat(dir.File(name + ".kubeconfig"))
				if c.want == "" && (err != nil || info.Mode().Perm() != 0o600) {
					t.Errorf("the kubeconfig of %s is %v (%v)", name, info, err)
				}
			}
		})
	}
}

func openDir(t *testing.T) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(filepath.Join(t.TempDir(), "data"), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

func alreadyExists() *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict}
}

// resources is how an apiserver describes one kind of a group.
func resources(version, name, kind string) *metav1.APIResourceList {
	return &metav1.APIResourceList{
		GroupVersion: version, APIResources: []metav1.APIResource{{Name: name, Kind: kind, Namespaced: true}},
	}
}

package converted

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

func TestUnsupported(t *testing.T) {
	for name, c := range map[string]struct {
		spec tenancyv1alpha1.VirtualClusterSpec
		want []string // the errors, each with the field
	}{
		"empty":        {},
		"pod security": {spec: tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{PodSecurity: "restricted"}}},
		"traffic":      {spec: tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{AllowTrafficFromTenants: true}}},
		"limits":       {spec: tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{Limits: map[string]int64{"pods": 1}}}},
		"alias":        {spec: tenancyv1alpha1.VirtualClusterSpec{Alias: "shop", Weight: 3, PKIExpireDays: 9}},
		"members":      {spec: tenancyv1alpha1.VirtualClusterSpec{Members: []tenancyv1alpha1.Member{{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}}}},
		"policy":       {spec: tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{AllowNodeName: true, DaemonSets: "Refuse"}}},
		"hosts": {
			tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{IngressHosts: []string{"*"}, AllowReclaimPolicies: []tenancyv1alpha1.ReclaimPolicy{"Retain"}}},
			[]string{"spec.policy.allowReclaimPolicies: Forbidden: converted tenants do not have it yet, since they have no PersistentVolumes: remove it"},
		},
		"storage": {spec: tenancyv1alpha1.VirtualClusterSpec{ControlPlane: &tenancyv1alpha1.ControlPlaneSpec{
			Limits: &tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(100)), Storage: new(resource.MustParse("1Mi"))},
		}}},
		"no limits": {spec: tenancyv1alpha1.VirtualClusterSpec{ControlPlane: &tenancyv1alpha1.ControlPlaneSpec{}}},
		"requests": {
			tenancyv1alpha1.VirtualClusterSpec{ControlPlane: &tenancyv1alpha1.ControlPlaneSpec{
				Limits: &tenancyv1alpha1.ControlPlaneLimits{Objects: new(int64(100)), ConcurrentReads: new(int32(10))},
			}},
			[]string{"spec.controlPlane: Forbidden: converted tenants do not have it yet, except limits.objects and limits.storage: remove it"},
		},
		"quota": {spec: tenancyv1alpha1.VirtualClusterSpec{Quota: &tenancyv1alpha1.QuotaSpec{}}},
		"several": {tenancyv1alpha1.VirtualClusterSpec{ServiceCIDR: "10.0.0.0/24", Paused: true}, []string{
			"spec.paused: Forbidden: converted tenants do not have it yet: remove it, or create the VirtualCluster with another provisioner",
			"spec.serviceCidr: Forbidden: converted tenants do not have it yet: remove it",
		}},
		"nodes": {spec: tenancyv1alpha1.VirtualClusterSpec{Sync: &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll}}},
		"DaemonSets": {spec: tenancyv1alpha1.VirtualClusterSpec{
			Policy: &tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun}, Sync: &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll},
		}},
		"DaemonSets on some nodes": {
			tenancyv1alpha1.VirtualClusterSpec{
				Policy: &tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun},
				Sync:   &tenancyv1alpha1.SyncSpec{Nodes: tenancyv1alpha1.SyncAll, NodeSelector: map[string]string{"pool": "a"}},
			},
			[]string{"spec.sync: Forbidden: the DaemonSets of a converted tenant run on all nodes: set spec.sync.nodes to All, without spec.sync.nodeSelector"},
		},
		"DaemonSets on the nodes of pods": {
			tenancyv1alpha1.VirtualClusterSpec{Policy: &tenancyv1alpha1.TenantPolicy{DaemonSets: tenancyv1alpha1.DaemonSetsRun}},
			[]string{"set spec.sync.nodes to All"},
		},
		"sync": {
			tenancyv1alpha1.VirtualClusterSpec{Sync: &tenancyv1alpha1.SyncSpec{Kinds: []tenancyv1alpha1.KindSync{{Kind: "Pod"}}}},
			[]string{"spec.sync: Forbidden: converted tenants do not have it yet, except nodes and nodeSelector: remove it"},
		},
	} {
		wrong := Unsupported(&c.spec)
		has := func(err *field.Error, want string) bool { return strings.Contains(err.Error(), want) }
		if !slices.EqualFunc(wrong, c.want, has) {
			t.Errorf("%s: got %v, want %q", name, wrong, c.want)
		}
	}
}

// TestEachFieldOfThePolicy checks that a field which is added to the policy is
// enforced for converted tenants, or rejected.
func TestEachFieldOfThePolicy(t *testing.T) {
	elsewhere := []string{"PodSecurity", "AllowTrafficFromTenants", "Limits", "AllowConversionWebhooks"}
	for field := range reflect.TypeFor[tenancyv1alpha1.TenantPolicy]().Fields() {
		policy := tenancyv1alpha1.TenantPolicy{}
		setField(reflect.ValueOf(&policy).Elem().FieldByIndex(field.Index))
		enforced := converted.PolicyText(policy) != "" || slices.Contains(elsewhere, field.Name)
		rejected := len(Unsupported(&tenancyv1alpha1.VirtualClusterSpec{Policy: &policy})) > 0
		if !enforced && !rejected {
			t.Errorf("%s has no effect", field.Name)
		}
	}
}

// setField sets a field of a policy to a value that is not the default.
func setField(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("Run")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default: // limits, which hold elsewhere
	}
}

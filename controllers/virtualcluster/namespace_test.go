package virtualcluster

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// failure checks the reason and the parts of the message of a Failure; no
// reason means no error.
func failure(t *testing.T, err error, reason string, parts ...string) {
	t.Helper()
	if reason == "" {
		if err != nil {
			t.Errorf("unexpected error: %v", err)
		}
		return
	}
	f := provisioner.AsFailure(err)
	if f == nil || f.Reason != reason {
		t.Fatalf("got %v, want a Failure with reason %s", err, reason)
	}
	for _, part := range parts {
		if !strings.Contains(f.Message, part) {
			t.Errorf("message %q lacks %q", f.Message, part)
		}
	}
}

func TestClusterKey(t *testing.T) {
	cases := map[string]struct {
		namespace, name string
		reason, message string
	}{
		"Good":        {"tenants", "red", "", ""},
		"Longest":     {strings.Repeat("n", 15), strings.Repeat("r", 40), "", ""},
		"OneTooMany":  {strings.Repeat("n", 16), strings.Repeat("r", 40), tenancyv1alpha1.ReasonNameTooLong, "1 characters too long"},
		"FarTooLong":  {strings.Repeat("n", 63), strings.Repeat("r", 40), tenancyv1alpha1.ReasonNameTooLong, "48 characters too long"},
		"NoDNSLabel":  {"tenants", "red.team", tenancyv1alpha1.ReasonInvalidSpec, "cannot be tenants-"},
		"UpperLetter": {"tenants", "Red", tenancyv1alpha1.ReasonInvalidSpec, "lower case"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			vc := tenant()
			vc.Namespace, vc.Name = tc.namespace, tc.name
			key, err := clusterKey(vc)
			failure(t, err, tc.reason, tc.message)
			if want := names.ClusterKey(tc.namespace, tc.name, vc.UID); err == nil && key != want {
				t.Errorf("got %s, want %s", key, want)
			}
		})
	}
}

func namespace(name string, annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
}

func TestCheckOwner(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		reason      string
	}{
		"Own":      {map[string]string{names.VCUID: "uid-of-red"}, ""},
		"Nobodys":  {nil, tenancyv1alpha1.ReasonNamespaceConflict},
		"Another":  {map[string]string{names.VCUID: "uid-of-blue"}, tenancyv1alpha1.ReasonNamespaceConflict},
		"ByName":   {map[string]string{names.VCName: "red", names.VCNamespace: "tenants"}, tenancyv1alpha1.ReasonNamespaceConflict},
		"EmptyUID": {map[string]string{names.VCUID: ""}, tenancyv1alpha1.ReasonNamespaceConflict},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			failure(t, checkOwner(tenant(), namespace("root", tc.annotations)), tc.reason, "namespace root", "delete the namespace")
		})
	}
}

func TestChooseProvisioner(t *testing.T) {
	hosted := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerHosted }
	native := namespace("root", map[string]string{names.Provisioner: "Native"})
	cases := map[string]struct {
		vc   *tenancyv1alpha1.VirtualCluster
		root *corev1.Namespace
		want tenancyv1alpha1.ProvisionerType
	}{
		"Spec":         {tenant(hosted), nil, tenancyv1alpha1.ProvisionerHosted},
		"SpecBeatsAll": {tenant(hosted), native, tenancyv1alpha1.ProvisionerHosted},
		"Remembered":   {tenant(), native, tenancyv1alpha1.ProvisionerNative},
		"Default":      {tenant(), namespace("root", nil), tenancyv1alpha1.ProvisionerExternal},
		"DefaultOfNew": {tenant(), nil, tenancyv1alpha1.ProvisionerExternal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := chooseProvisioner(tc.vc, tc.root, tenancyv1alpha1.ProvisionerExternal); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestFindProvisioner(t *testing.T) {
	all := provisioner.Registry{tenancyv1alpha1.ProvisionerHosted: nil, tenancyv1alpha1.ProvisionerExternal: nil}
	cases := map[string]struct {
		registry provisioner.Registry
		kind     tenancyv1alpha1.ProvisionerType
		message  string // empty if found
	}{
		"Found":     {all, tenancyv1alpha1.ProvisionerHosted, ""},
		"Missing":   {all, tenancyv1alpha1.ProvisionerNative, "no provisioner Native; it has: External, Hosted"},
		"None":      {nil, tenancyv1alpha1.ProvisionerNative, "it has: none"},
		"NoDefault": {all, "", "no default: create the VirtualCluster with one of: External, Hosted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reason := ""
			if tc.message != "" {
				reason = tenancyv1alpha1.ReasonProvisionerUnavailable
			}
			_, err := findProvisioner(tc.registry, tc.kind)
			failure(t, err, reason, tc.message)
		})
	}
}

// configurable is a provisioner that runs nothing.
type configurable struct {
	provisioner.Provisioner
	serviceCIDR, second bool
}

func (c configurable) Capabilities() provisioner.Capabilities {
	return provisioner.Capabilities{ServiceCIDR: c.serviceCIDR, SecondServiceCIDR: c.second}
}

// TestUsesRange covers the capability that decides whether a tenant is allotted
// a part of the Service addresses.
func TestUsesRange(t *testing.T) {
	r := &Reconciler{Default: "Own", Provisioners: provisioner.Registry{
		"Own": configurable{serviceCIDR: true}, "Elsewhere": configurable{},
	}}
	for kind, want := range map[tenancyv1alpha1.ProvisionerType]bool{"": true, "Own": true, "Elsewhere": false, "Missing": false} {
		vc := tenant(func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = kind })
		if got := r.usesRange(vc); got != want {
			t.Errorf("%q: got %v, want %v", kind, got, want)
		}
	}
}

// TestRangesOfTenantsThatExist covers which range a control plane that runs gets:
// the second, if it has a part of the first pool and its provisioner can add one.
func TestRangesOfTenantsThatExist(t *testing.T) {
	six := servicecidr.Pool{CIDR: netip.MustParsePrefix("fd00:104::/105"), PartBits: 116}
	four := servicecidr.Pool{CIDR: netip.MustParsePrefix("10.104.0.0/13"), PartBits: 20}
	r := &Reconciler{ServiceAddresses: four, SecondaryServiceAddresses: six, Provisioners: provisioner.Registry{
		"Adds": configurable{serviceCIDR: true, second: true}, "Keeps": configurable{serviceCIDR: true},
	}}
	for name, tc := range map[string]struct {
		kind  tenancyv1alpha1.ProvisionerType
		first string
		want  bool
	}{
		"with a part of the first pool":        {"Adds", "10.104.16.0/20", true},
		"older than the first pool":            {"Adds", "", false},
		"of a provisioner that cannot add one": {"Keeps", "10.104.16.0/20", false},
		"of a provisioner that is not there":   {"Missing", "10.104.16.0/20", false},
	} {
		t.Run(name, func(t *testing.T) {
			vc := tenant(func(vc *tenancyv1alpha1.VirtualCluster) {
				vc.Spec.Provisioner, vc.Status.Endpoint, vc.Status.ServiceCIDR = tc.kind, "https://198.19.0.1", tc.first
			})
			families := r.families(vc)
			if got := r.isAllotted(vc, families[1]); got != tc.want {
				t.Errorf("it gets a second range: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestRootMetadata(t *testing.T) {
	want := metav1.ObjectMeta{
		Name:   "tenants-123456-red",
		Labels: map[string]string{"tenancy.x-k8s.io/vcname": "red", "tenancy.x-k8s.io/vcnamespace": "tenants"},
		Annotations: map[string]string{
			"tenancy.x-k8s.io/cluster":     "tenants-123456-red",
			"tenancy.x-k8s.io/vcuid":       "uid-of-red",
			"tenancy.x-k8s.io/vcname":      "red",
			"tenancy.x-k8s.io/vcnamespace": "tenants",
			"tenancy.x-k8s.io/provisioner": "Hosted",
		},
	}
	if diff := cmp.Diff(want, rootMetadata(tenant(), "tenants-123456-red", tenancyv1alpha1.ProvisionerHosted)); diff != "" {
		t.Error(diff)
	}
}

func TestHolds(t *testing.T) {
	cases := map[string]struct {
		have, want map[string]string
		ok         bool
	}{
		"Nothing": {nil, nil, true},
		"More":    {map[string]string{"a": "b", "c": "d"}, map[string]string{"a": "b"}, true},
		"Other":   {map[string]string{"a": "x"}, map[string]string{"a": "b"}, false},
		"Less":    {nil, map[string]string{"a": "b"}, false},
		"Empty":   {nil, map[string]string{"a": ""}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := holds(tc.have, tc.want); got != tc.ok {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	cases := map[string]struct {
		names []string
		want  string
	}{
		"None": {nil, ""},
		"One":  {[]string{"a"}, "namespace a"},
		"Few":  {[]string{"c", "a", "b"}, "namespace a, b, c"},
		"Many": {[]string{"e", "d", "c", "b", "a"}, "namespace a, b, c and 2 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var all []corev1.Namespace
			for _, n := range tc.names {
				all = append(all, *namespace(n, nil))
			}
			if got := describe(all); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOwnerOf(t *testing.T) {
	cases := map[string]struct {
		labels map[string]string
		want   []reconcile.Request
	}{
		"Ours": {names.OwnerLabels(tenant()), []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "tenants", Name: "red"}}}},
		"None": {nil, nil},
		"Half": {map[string]string{names.VCName: "red"}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
			if diff := cmp.Diff(tc.want, OwnerOf(context.Background(), object)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	cases := map[string]struct {
		change func(*tenancyv1alpha1.VirtualCluster)
		want   bool
	}{
		"Nothing":    {func(*tenancyv1alpha1.VirtualCluster) {}, false},
		"OurStatus":  {func(vc *tenancyv1alpha1.VirtualCluster) { vc.Status = statusOf(vc, serves) }, false},
		"Syncing":    {withSyncing(metav1.ConditionTrue, "Syncing", ""), true},
		"Spec":       {func(vc *tenancyv1alpha1.VirtualCluster) { vc.Generation++ }, true},
		"Deleted":    {deleted, true},
		"Annotation": {func(vc *tenancyv1alpha1.VirtualCluster) { vc.Annotations = map[string]string{names.RestartedAt: "now"} }, true},
		"Finalizer":  {func(vc *tenancyv1alpha1.VirtualCluster) { vc.Finalizers = []string{Finalizer} }, true},
		"Label":      {func(vc *tenancyv1alpha1.VirtualCluster) { vc.Labels = map[string]string{"a": "b"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := concerns(event.UpdateEvent{ObjectOld: tenant(), ObjectNew: tenant(tc.change)}); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

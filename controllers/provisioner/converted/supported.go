package converted

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

// Unsupported returns the fields of a spec that ask for what converted tenants do
// not have: a limit that is not enforced would be none.
func Unsupported(spec *tenancyv1alpha1.VirtualClusterSpec) field.ErrorList {
	policy := tenancyv1alpha1.TenantPolicy{}
	if spec.Policy != nil {
		policy = *spec.Policy
	}
	hasControlPlane := !equality.Semantic.DeepEqual(withoutStorage(spec.ControlPlane), tenancyv1alpha1.ControlPlaneSpec{})
	at := field.NewPath("spec")
	wrong := unsupportedSync(spec, at.Child("sync"))
	for _, each := range []struct {
		set    bool
		path   *field.Path
		reason string
	}{
		{hasControlPlane, at.Child("controlPlane"), "except limits.objects and limits.storage"},
		{spec.KubernetesVersion != "", at.Child("kubernetesVersion"), ""},
		{spec.Paused, at.Child("paused"), ""},
		{len(policy.AllowReclaimPolicies) > 0, at.Child("policy", "allowReclaimPolicies"), "since they have no PersistentVolumes"},
		{spec.ServiceCIDR != "", at.Child("serviceCidr"), ""},
		{spec.SecondaryServiceCIDR != "", at.Child("secondaryServiceCidr"), ""},
	} {
		if each.set {
			wrong = append(wrong, unsupported(each.path, each.reason))
		}
	}
	return wrong
}

// unsupported returns the error of a field.
func unsupported(path *field.Path, reason string) *field.Error {
	if reason != "" {
		reason = ", " + reason
	}
	return field.Forbidden(path, "converted tenants do not have it yet"+reason+
		": remove it, or create the VirtualCluster with another provisioner")
}

// unsupportedSync returns what is wrong with the nodes of a spec, and with what else
// it synchronizes.
func unsupportedSync(spec *tenancyv1alpha1.VirtualClusterSpec, path *field.Path) (wrong field.ErrorList) {
	var sync tenancyv1alpha1.SyncSpec
	if spec.Sync != nil {
		sync = *spec.Sync
	}
	if converted.RunsDaemonSets(spec) && (sync.Nodes != tenancyv1alpha1.SyncAll || len(sync.NodeSelector) > 0) {
		wrong = append(wrong, field.Forbidden(path, "the DaemonSets of a converted tenant run on all nodes: "+
			"set spec.sync.nodes to All, without spec.sync.nodeSelector, or remove spec.policy.daemonSets"))
	}
	sync.Nodes, sync.NodeSelector = "", nil
	if !equality.Semantic.DeepEqual(sync, tenancyv1alpha1.SyncSpec{}) {
		wrong = append(wrong, unsupported(path, "except nodes and nodeSelector"))
	}
	return wrong
}

// withoutStorage returns the configuration of a control plane without the limits of
// what the tenant stores.
func withoutStorage(spec *tenancyv1alpha1.ControlPlaneSpec) tenancyv1alpha1.ControlPlaneSpec {
	if spec == nil {
		return tenancyv1alpha1.ControlPlaneSpec{}
	}
	rest := *spec.DeepCopy()
	if rest.Limits == nil {
		return rest
	}
	rest.Limits.Objects, rest.Limits.Storage = nil, nil
	if equality.Semantic.DeepEqual(*rest.Limits, tenancyv1alpha1.ControlPlaneLimits{}) {
		rest.Limits = nil
	}
	return rest
}

package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/virtualvolume"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// superVolume returns a volume as a CSI driver creates it for blue's claim
// data, bound.
func superVolume(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := fill(&corev1.PersistentVolume{})
	volume.ObjectMeta = metav1.ObjectMeta{
		Name: "pvc-1", UID: "super-volume",
		Labels: map[string]string{
			"topology.kubernetes.io/zone": "z", "tenancy.x-k8s.io/vcname": "blue", "storage-team/pool": "7",
		},
		Annotations: map[string]string{
			"pv.kubernetes.io/provisioned-by":                            "disk.example.com",
			"volume.kubernetes.io/provisioner-deletion-secret-name":      "admin",
			"volume.kubernetes.io/provisioner-deletion-secret-namespace": "storage-system",
		},
		Finalizers: []string{"external-provisioner.volume.kubernetes.io/finalizer"},
	}
	secret := &corev1.SecretReference{Namespace: "storage-system", Name: "admin"}
	volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "disk.example.com", VolumeHandle: "array-7/lun-3", FSType: "xfs",
		VolumeAttributes:   map[string]string{"server": "10.1.2.3"},
		NodeStageSecretRef: secret, NodePublishSecretRef: secret, NodeExpandSecretRef: secret,
		ControllerExpandSecretRef: secret, ControllerPublishSecretRef: secret,
	}}
	volume.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: superDefault, Name: "data", UID: "super-uid", ResourceVersion: "42",
	}
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	volume.Status.Phase = corev1.VolumeBound
	volume.Status.Message = "mounted in " + superDefault
	for _, c := range change {
		c(volume)
	}
	return volume
}

// claimed is the view of blue with its claim data.
func claimed() kinds.View {
	v := view
	v.Lookup = lookup(map[string]client.Object{"PersistentVolumeClaim " + superDefault + "/data": claimOf("fast")})
	return v
}

// shownVolume is the volume that blue sees.
func shownVolume(change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	own := superVolume()
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-1",
			Labels:      map[string]string{"topology.kubernetes.io/zone": "z"},
			Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "disk.example.com"},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    own.Spec.Capacity,
			AccessModes: own.Spec.AccessModes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "disk.example.com", VolumeHandle: "pvc-1",
			}},
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "default", Name: "data", UID: "tenant-uid",
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              own.Spec.StorageClassName,
			VolumeMode:                    own.Spec.VolumeMode,
			NodeAffinity:                  own.Spec.NodeAffinity,
			VolumeAttributesClassName:     own.Spec.VolumeAttributesClassName,
		},
		Status: corev1.PersistentVolumeStatus{
			Phase: corev1.VolumeBound, Reason: own.Status.Reason, Message: "mounted in default",
		},
	}
	for _, c := range change {
		c(volume)
	}
	return volume
}

// TestVolumeIsShownWithoutTheStorageBehindIt checks that only these fields of a
// volume are synced up.
func TestVolumeIsShownWithoutTheStorageBehindIt(t *testing.T) {
	asNFS := func(v *corev1.PersistentVolume) {
		v.Annotations = nil
		v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.1.2.3", Path: "/blue"}}
	}
	byOther := func(v *corev1.PersistentVolume) {
		v.Annotations = nil
		v.Spec.CSI.Driver = "super.tenancy.x-k8s.io"
	}
	released := func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }
	dangling := func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "super-uid" }
	tests := map[string]struct {
		view        kinds.View
		super, want *corev1.PersistentVolume
	}{
		"of a CSI driver": {claimed(), superVolume(), shownVolume()},
		"of another kind": {claimed(), superVolume(asNFS), shownVolume(byOther)},
		"of a driver that was part of Kubernetes": {
			claimed(),
			superVolume(func(v *corev1.PersistentVolume) { v.Annotations[virtualvolume.ProvisionedBy] = "kubernetes.io/aws-ebs" }),
			shownVolume(func(v *corev1.PersistentVolume) { v.Annotations = nil }),
		},
		"that will be recycled": {
			claimed(),
			superVolume(func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRecycle
			}),
			shownVolume(func(v *corev1.PersistentVolume) {
				v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			}),
		},
		"with its claim deleted in the tenant": {view, superVolume(), shownVolume(released, dangling)},
		"with its claim deleted on both sides": {view, superVolume(released), shownVolume(released, dangling)},
		"with another claim of the name": {
			claimed(),
			superVolume(released, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "older-uid" }),
			shownVolume(released, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "older-uid" }),
		},
		"that could not be deleted": {
			view,
			superVolume(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed }),
			shownVolume(dangling, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed }),
		},
	}
	k := kindOf[kinds.Up[*corev1.PersistentVolume]](t, PersistentVolume())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := k.Desired(tt.view, tt.super)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the volume in the tenant (-want +got):\n%s", diff)
			}
			for _, secret := range []string{"10.1.2.3", "array-7", "storage-system", "team-71a1c3"} {
				if strings.Contains(got.String(), secret) {
					t.Errorf("%s is shown", secret)
				}
			}
		})
	}
}

// TestVolumeBelongsToTheNamespaceOfItsClaim checks that a volume that only
// waits for a claim belongs to no tenant, since the claim may become another's.
func TestVolumeBelongsToTheNamespaceOfItsClaim(t *testing.T) {
	tests := map[string]struct {
		super *corev1.PersistentVolume
		want  string
	}{
		"bound":    {superVolume(), superDefault},
		"released": {superVolume(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }), superDefault},
		"failed":   {superVolume(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeFailed }), superDefault},
		"just made for a claim": {
			superVolume(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumePending }), "",
		},
		"set aside for a claim of a name": {
			superVolume(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID, v.Status.Phase = "", corev1.VolumeAvailable }), "",
		},
		"free": {
			superVolume(func(v *corev1.PersistentVolume) { v.Spec.ClaimRef, v.Status.Phase = nil, corev1.VolumeAvailable }), "",
		},
	}
	k := kindOf[kinds.Up[*corev1.PersistentVolume]](t, PersistentVolume())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Namespace(tt.super); got != tt.want {
				t.Errorf("the namespace is %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMergeVolume checks that the tenant's changes are reverted, except
// annotations of controllers there, and the status, which is written
// separately.
func TestMergeVolume(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.PersistentVolume]](t, PersistentVolume())
	noted := func(v *corev1.PersistentVolume) {
		v.UID, v.Finalizers = "tenant-volume", []string{"kubernetes.io/pv-protection"}
		v.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
	}
	tenant := shownVolume(noted, func(v *corev1.PersistentVolume) {
		v.Labels = map[string]string{"mine": "yes"}
		v.Annotations[virtualvolume.ProvisionedBy] = "mine.example.com"
		v.Spec.Capacity, v.Spec.ClaimRef = storage("1Ti"), nil
		v.Status.Phase = corev1.VolumeAvailable
		v.Status.LastPhaseTransitionTime = new(metav1.Unix(1, 0))
	})
	k.Merge(tenant, shownVolume())
	want := shownVolume(noted, func(v *corev1.PersistentVolume) {
		v.Status.Phase, v.Status.LastPhaseTransitionTime = corev1.VolumeAvailable, new(metav1.Unix(1, 0))
	})
	if diff := cmp.Diff(want, tenant); diff != "" {
		t.Errorf("after Merge (-want +got):\n%s", diff)
	}
	k.Status(tenant, shownVolume())
	want.Status.Phase = corev1.VolumeBound
	if diff := cmp.Diff(want, tenant); diff != "" {
		t.Errorf("after Status (-want +got):\n%s", diff)
	}
}

// TestVolumeIsMadeAnew checks that a volume with different immutable fields is
// recreated.
func TestVolumeIsMadeAnew(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"the same":       {func(*corev1.PersistentVolume) {}, false},
		"another driver": {func(v *corev1.PersistentVolume) { v.Spec.CSI.Driver = "nfs.example.com" }, true},
		"another mode":   {func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = nil }, true},
		"another size":   {func(v *corev1.PersistentVolume) { v.Spec.Capacity = storage("1Ti") }, false},
	}
	k := kindOf[kinds.Up[*corev1.PersistentVolume]](t, PersistentVolume())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Replace(shownVolume(), shownVolume(tt.change)); got != tt.want {
				t.Errorf("recreated: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestReclaimPolicyIsTheTenants checks that the tenant may change the reclaim
// policy if its policy allows it, and no other field.
func TestReclaimPolicyIsTheTenants(t *testing.T) {
	const recycle, retain, remove = corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	tests := map[string]struct {
		super, tenant, want corev1.PersistentVolumeReclaimPolicy
	}{
		"the same":                 {remove, remove, remove},
		"to be kept":               {remove, retain, retain},
		"to be deleted":            {retain, remove, remove},
		"never to be recycled":     {remove, recycle, remove},
		"unknown policies":         {retain, "Publish", retain},
		"Recycle, shown as Retain": {recycle, retain, recycle},
		"recycled, to be deleted":  {recycle, remove, remove},
	}
	k := kindOf[kinds.Up[*corev1.PersistentVolume]](t, PersistentVolume())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			super := superVolume(func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = tt.super })
			tenant := shownVolume(func(v *corev1.PersistentVolume) {
				v.Labels, v.Spec.Capacity = nil, storage("1Ti")
				v.Spec.PersistentVolumeReclaimPolicy = tt.tenant
			})
			both := []tenancyv1alpha1.ReclaimPolicy{"Retain", "Delete"}
			k.Back(under(tenancyv1alpha1.TenantPolicy{AllowReclaimPolicies: both}), super, tenant)
			want := superVolume(func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = tt.want })
			if diff := cmp.Diff(want, super); diff != "" {
				t.Errorf("the super cluster's volume (-want +got):\n%s", diff)
			}
			one := tenancyv1alpha1.ReclaimPolicy("Delete")
			if tt.tenant == remove {
				one = "Retain"
			}
			for _, policy := range []tenancyv1alpha1.TenantPolicy{{}, {AllowReclaimPolicies: []tenancyv1alpha1.ReclaimPolicy{one}}} {
				super = superVolume(func(v *corev1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = tt.super })
				k.Back(under(policy), super, tenant)
				if got := super.Spec.PersistentVolumeReclaimPolicy; got != tt.super {
					t.Errorf("with %v allowed, the super cluster's is %s", policy.AllowReclaimPolicies, got)
				}
			}
		})
	}
}

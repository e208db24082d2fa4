package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// claimOf returns a claim as the tenant's apiserver stores it.
func claimOf(class string, change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: meta("data"),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: storage("10Gi")},
			StorageClassName: &class,
			VolumeMode:       new(corev1.PersistentVolumeFilesystem),
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, c := range change {
		c(claim)
	}
	return claim
}

func storage(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
}

func TestClaimIsAdmittedForOfferedClassesAlone(t *testing.T) {
	annotated := func(class string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": class}
		}
	}
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		// refused is the class in the rejection; empty if the claim is
		// admitted.
		refused string
	}{
		"an offered class":            {claimOf("fast"), ""},
		"a class that is not offered": {claimOf("slow"), `"slow"`},
		"a class of another kind":     {claimOf("high"), `"high"`},
		"none":                        {claimOf(""), `""`},
		"no word of it":               {claimOf("", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), `""`},
		"the annotation alone":        {claimOf("", annotated("fast")), ""},
		"the annotation counts where it is forbidden":  {claimOf("fast", annotated("slow")), `"slow"`},
		"the annotation counts where it is the better": {claimOf("slow", annotated("fast")), ""},
		"a volume that is named changes nothing":       {claimOf("slow", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-1" }), `"slow"`},
	}
	k := kindOf[kinds.Down[*corev1.PersistentVolumeClaim]](t, PersistentVolumeClaim())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := k.Admit(offering("StorageClass", "fast"), tt.claim)
			switch {
			case tt.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), "spec.storageClassName is "+tt.refused)):
				t.Errorf("the error is %v; want one about %s", err, tt.refused)
			}
		})
	}
}

func TestDesiredClaim(t *testing.T) {
	data := corev1.TypedLocalObjectReference{APIGroup: new("snapshot.storage.k8s.io"), Kind: "VolumeSnapshot", Name: "monday"}
	tests := map[string]struct {
		tenant, want func(*corev1.PersistentVolumeClaim)
	}{
		"is synced down unchanged": {
			func(*corev1.PersistentVolumeClaim) {}, func(*corev1.PersistentVolumeClaim) {},
		},
		"with its selector, source and the volume that it names": {
			func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Selector, c.Spec.DataSource, c.Spec.VolumeName = onlySSD(), &data, "pv-1"
				c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: data.APIGroup, Kind: data.Kind, Name: data.Name}
			},
			func(c *corev1.PersistentVolumeClaim) {
				c.Spec.Selector, c.Spec.DataSource, c.Spec.VolumeName = onlySSD(), &data, "pv-1"
				c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: data.APIGroup, Kind: data.Kind, Name: data.Name}
			},
		},
		"with a source in another of the tenant's namespaces": {
			func(c *corev1.PersistentVolumeClaim) {
				c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "other", Namespace: new("shop")}
			},
			func(c *corev1.PersistentVolumeClaim) {
				c.Spec.DataSourceRef = &corev1.TypedObjectReference{
					Kind: "PersistentVolumeClaim", Name: "other", Namespace: new("team-71a1c3-blue-shop"),
				}
			},
		},
		"with attributes that are offered": {
			func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("high") },
			func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("high") },
		},
		"with attributes that are empty": {
			func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("") },
			func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("") },
		},
		"with the class of the annotation in the field": {
			func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-class": "fast"}
				c.Spec.StorageClassName = nil
			},
			func(*corev1.PersistentVolumeClaim) {},
		},
		"without the notes of controllers in the tenant": {
			func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{
					"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
					"volume.kubernetes.io/selected-node": "node-9", "volume.kubernetes.io/storage-provisioner": "x.example.com",
					"volume.beta.kubernetes.io/storage-provisioner": "x.example.com", "volume.kubernetes.io/storage-resizer": "x.example.com",
				}
				c.Finalizers = []string{"kubernetes.io/pvc-protection"}
			},
			func(*corev1.PersistentVolumeClaim) {},
		},
	}
	k := kindOf[kinds.Down[*corev1.PersistentVolumeClaim]](t, PersistentVolumeClaim())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := claimOf("fast", tt.want)
			want.Status = corev1.PersistentVolumeClaimStatus{}
			got := down(t, k, claimOf("fast", tt.tenant))
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("spec of the copy (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Status, got.Status); diff != "" {
				t.Errorf("status of the copy (-want +got):\n%s", diff)
			}
			for key := range got.Annotations {
				if !strings.HasPrefix(key, "tenancy.x-k8s.io/") {
					t.Errorf("the annotation %s is synced down", key)
				}
			}
			if len(got.Finalizers) > 0 {
				t.Errorf("the finalizers %v are synced down", got.Finalizers)
			}
		})
	}
}

func TestClaimOfAttributesThatAreNotOffered(t *testing.T) {
	claim := claimOf("fast", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("low") })
	_, err := desiredVolumeClaim(offering("VolumeAttributesClass", "high"), claim)
	if err == nil || !strings.Contains(err.Error(), `spec.volumeAttributesClassName is "low"`) {
		t.Errorf("the error is %v; want one about the class low", err)
	}
}

// TestMergeClaim checks that only the size and the attributes of an existing
// claim change, and that the super cluster's choice of a volume stays.
func TestMergeClaim(t *testing.T) {
	super := claimOf("fast", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName = "pv-1"
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
		c.Status.Phase = corev1.ClaimBound
	})
	desired := claimOf("other", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = storage("20Gi")
		c.Spec.VolumeAttributesClassName = new("high")
		c.Spec.AccessModes, c.Spec.VolumeMode, c.Spec.Selector = nil, nil, onlySSD()
	})
	want := super.DeepCopy()
	want.Spec.Resources.Requests, want.Spec.VolumeAttributesClassName = storage("20Gi"), new("high")
	mergeVolumeClaim(super, desired)
	if diff := cmp.Diff(want, super); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
}

func TestClaimIsBoundOnce(t *testing.T) {
	named := func(volume string) *corev1.PersistentVolumeClaim {
		return claimOf("fast", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = volume })
	}
	tests := map[string]struct{ tenant, super, want string }{
		"to nothing yet":               {"", "", ""},
		"to what the copy is bound to": {"", "pv-1", "pv-1"},
		"and stays so":                 {"pv-1", "pv-1", "pv-1"},
		"also if the copy has another": {"pv-1", "pv-2", "pv-1"},
		"and if the copy is recreated": {"pv-1", "", "pv-1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := named(tt.tenant)
			boundVolume(view, tenant, named(tt.super))
			if diff := cmp.Diff(named(tt.want), tenant); diff != "" {
				t.Errorf("the tenant's claim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClaimStatus(t *testing.T) {
	of := func(volume string, status corev1.PersistentVolumeClaimStatus) *corev1.PersistentVolumeClaim {
		return claimOf("fast", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName, c.Status = volume, status })
	}
	pending := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	lost := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimLost}
	bound := corev1.PersistentVolumeClaimStatus{
		Phase: corev1.ClaimBound, Capacity: storage("10Gi"), AllocatedResources: storage("20Gi"),
		AllocatedResourceStatuses: map[corev1.ResourceName]corev1.ClaimResourceStatus{
			corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizePending,
		},
		CurrentVolumeAttributesClassName: new("high"),
		Conditions: []corev1.PersistentVolumeClaimCondition{{
			Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
			Message: "waiting for a pod in team-71a1c3-blue-default",
		}},
	}
	told := *bound.DeepCopy()
	told.Conditions[0].Message = "waiting for a pod in default"
	tests := map[string]struct{ tenant, super, want *corev1.PersistentVolumeClaim }{
		"while both wait": {of("", pending), of("", pending), of("", pending)},
		"bound":           {of("", pending), of("pv-1", bound), of("", told)},
		"bound, and not observed by the tenant's controller": {of("pv-1", lost), of("pv-1", bound), of("pv-1", told)},
		"lost": {of("pv-1", told), of("pv-1", lost), of("pv-1", lost)},
		// A controller in the tenant has bound the claim, or reports that it is
		// lost; it would report it again and again.
		"of a copy that is not as far": {of("pv-1", told), of("", pending), of("pv-1", told)},
		"of a copy that is recreated":  {of("pv-1", lost), of("pv-1", pending), of("pv-1", lost)},
	}
	k := kindOf[kinds.Down[*corev1.PersistentVolumeClaim]](t, PersistentVolumeClaim())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.tenant.DeepCopy()
			k.Status(view, got, tt.super)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the tenant's claim (-want +got):\n%s", diff)
			}
			if same := k.Same(got, tt.tenant); same != cmp.Equal(got.Status, tt.tenant.Status) {
				t.Errorf("Same is %t", same)
			}
		})
	}
}

func onlySSD() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "ssd"}}
}

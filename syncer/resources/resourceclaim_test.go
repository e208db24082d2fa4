package resources

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// asking returns a claim with a request for a device of a class.
func asking(class string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: 1},
	}}}}
}

func TestResourceClaimGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*resourcev1.ResourceClaim]](t, ResourceClaim())
	if !k.OnDemand {
		t.Error("claims are synced down without a pod")
	}
	tenant := &resourcev1.ResourceClaim{ObjectMeta: meta("gpu"), Spec: asking("fast"), Status: allocated("gpu-1")}
	got, err := k.Desired(view, tenant)
	if diff := cmp.Diff(&resourcev1.ResourceClaim{Spec: asking("fast")}, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
}

func TestDevicesThatMayBeAskedFor(t *testing.T) {
	exactly := func(class string, admin bool) resourcev1.ResourceClaimSpec {
		spec := asking(class)
		spec.Devices.Requests[0].Exactly.AdminAccess = new(admin)
		return spec
	}
	oneOf := func(classes ...string) resourcev1.ResourceClaimSpec {
		spec := asking("")
		spec.Devices.Requests[0].Exactly = nil
		for _, class := range classes {
			spec.Devices.Requests[0].FirstAvailable = append(spec.Devices.Requests[0].FirstAvailable,
				resourcev1.DeviceSubRequest{DeviceClassName: class})
		}
		return spec
	}
	selecting := func(expression string) resourcev1.ResourceClaimSpec {
		spec := asking("fast")
		spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{}, {CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
		return spec
	}
	expensive := "optional.of(1)" + strings.Repeat(".optMap(a,a)", 20) + ".hasValue()"
	oneOfExpensive := oneOf("fast", "slow")
	oneOfExpensive.Devices.Requests[0].FirstAvailable[1].Selectors = selecting(expensive).Devices.Requests[0].Exactly.Selectors
	tests := map[string]struct {
		spec    resourcev1.ResourceClaimSpec
		refused string
	}{
		"a selection":                        {selecting("device.driver == 'a'"), ""},
		"an expensive selection":             {selecting(expensive), "too much work"},
		"an expensive alternative":           {oneOfExpensive, "too much work"},
		"a class that is offered":            {asking("fast"), ""},
		"a class that is not":                {asking("secret"), `"secret"`},
		"alternatives that are offered":      {oneOf("fast", "slow"), ""},
		"an alternative that is not":         {oneOf("fast", "secret"), `"secret"`},
		"administering is not":               {exactly("fast", true), "adminAccess"},
		"not administering":                  {exactly("fast", false), ""},
		"no requests":                        {resourcev1.ResourceClaimSpec{}, ""},
		"a class of another kind is no such": {asking("public"), `"public"`},
	}
	v := offering("DeviceClass", "fast", "slow")
	claims := kindOf[kinds.Down[*resourcev1.ResourceClaim]](t, ResourceClaim())
	templates := kindOf[kinds.Down[*resourcev1.ResourceClaimTemplate]](t, ResourceClaimTemplate())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claim := claims.Admit(v, &resourcev1.ResourceClaim{Spec: tt.spec})
			template := templates.Admit(v, &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: tt.spec}})
			for what, err := range map[string]error{"claim": claim, "template": template} {
				switch {
				case tt.refused == "" && err != nil:
					t.Errorf("the %s is refused: %v", what, err)
				case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
					t.Errorf("of the %s, the error is %v, which does not name %s", what, err, tt.refused)
				}
			}
		})
	}
}

func TestClaimsOfTemplatesStay(t *testing.T) {
	k := kindOf[kinds.Down[*resourcev1.ResourceClaim]](t, ResourceClaim())
	made := map[string]string{"resource.kubernetes.io/pod-claim-name": "gpu"}
	pod := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", Controller: new(true)}}
	tests := map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"made for a pod":                {metav1.ObjectMeta{Annotations: made, OwnerReferences: pod}, true},
		"annotated, without an owner":   {metav1.ObjectMeta{Annotations: made}, false},
		"owned by a pod, not annotated": {metav1.ObjectMeta{OwnerReferences: pod}, false},
		"of something that is no pod":   {metav1.ObjectMeta{Annotations: made, OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Pod"}}}, false},
		"written by hand":               {metav1.ObjectMeta{}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Skip(view, &resourcev1.ResourceClaim{ObjectMeta: tt.meta}); got != tt.want {
				t.Errorf("Skip = %t, want %t", got, tt.want)
			}
		})
	}
}

// allocated returns the status of a claim with these devices.
func allocated(devices ...string) resourcev1.ResourceClaimStatus {
	a := &resourcev1.AllocationResult{}
	for _, name := range devices {
		a.Devices.Results = append(a.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: "gpu.example.com", Pool: "node-1", Device: name,
		})
	}
	return resourcev1.ResourceClaimStatus{Allocation: a}
}

// usedBy returns references to pods with these names and UIDs, in pairs.
func usedBy(pods ...string) []resourcev1.ResourceClaimConsumerReference {
	var refs []resourcev1.ResourceClaimConsumerReference
	for i := 0; i < len(pods); i += 2 {
		refs = append(refs, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pods[i], UID: types.UID(pods[i+1])})
	}
	return refs
}

func TestClaimStatusComesUp(t *testing.T) {
	k := kindOf[kinds.Down[*resourcev1.ResourceClaim]](t, ResourceClaim())
	with := func(s resourcev1.ResourceClaimStatus, change func(*resourcev1.ResourceClaimStatus)) resourcev1.ResourceClaimStatus {
		change(&s)
		return s
	}
	reserved := func(refs ...resourcev1.ResourceClaimConsumerReference) func(*resourcev1.ResourceClaimStatus) {
		return func(s *resourcev1.ResourceClaimStatus) { s.ReservedFor = refs }
	}
	config := func(sources ...resourcev1.AllocationConfigSource) func(*resourcev1.ResourceClaimStatus) {
		return func(s *resourcev1.ResourceClaimStatus) {
			for _, source := range sources {
				s.Allocation.Devices.Config = append(s.Allocation.Devices.Config, resourcev1.DeviceAllocationConfiguration{Source: source})
			}
		}
	}
	device := func(text string, generation int64) func(*resourcev1.ResourceClaimStatus) {
		return func(s *resourcev1.ResourceClaimStatus) {
			s.Devices = []resourcev1.AllocatedDeviceStatus{{
				Driver: "gpu.example.com", Pool: "node-1", Device: "gpu-1",
				Conditions:  []metav1.Condition{{Type: "Ready", Message: text, ObservedGeneration: generation}},
				Data:        &runtime.RawExtension{Raw: []byte(`{"for":"` + text + `"}`)},
				NetworkData: &resourcev1.NetworkDeviceData{IPs: []string{"10.1.0.1/24"}},
			}}
		}
	}
	placed := func(s *resourcev1.ResourceClaimStatus) { s.Allocation.NodeSelector = &corev1.NodeSelector{} }
	nobody := resourcev1.ResourceClaimStatus{}

	tests := map[string]struct {
		was, super, want resourcev1.ResourceClaimStatus
	}{
		"nothing": {nobody, nobody, nobody},
		"devices": {nobody, allocated("gpu-1", "gpu-2"), allocated("gpu-1", "gpu-2")},
		"the configuration of classes and the nodes are dropped": {
			nobody, with(with(allocated("gpu-1"), config("FromClass", "FromClaim", "FromClass")), placed),
			with(allocated("gpu-1"), config("FromClaim")),
		},
		"devices that are gone": {
			with(allocated("gpu-1"), reserved(usedBy("web", "web-uid")...)), nobody, nobody,
		},
		"of other devices, the first are removed first": {
			with(allocated("gpu-1"), reserved(usedBy("web", "web-uid")...)),
			with(allocated("gpu-2"), reserved(usedBy("web", "super-uid")...)), nobody,
		},
		"an allocation that the tenant's apiserver has changed stays": {
			with(allocated("gpu-1"), placed), with(allocated("gpu-1"), config("FromClaim")), with(allocated("gpu-1"), placed),
		},
		"its pods": {
			nobody, with(allocated("gpu-1"), reserved(usedBy("web", "super-uid", "job", "super-uid")...)),
			with(allocated("gpu-1"), reserved(usedBy("web", "web-uid", "job", "job-uid")...)),
		},
		"pods that are not its own, or not there any more, are not shown": {
			nobody, with(allocated("gpu-1"), reserved(usedBy("theirs", "super-uid", "web", "earlier-uid")...)), allocated("gpu-1"),
		},
		"consumers other than pods are dropped": {
			nobody, with(allocated("gpu-1"), reserved(
				resourcev1.ResourceClaimConsumerReference{APIGroup: "example.com", Resource: "pods", Name: "web", UID: "super-uid"},
				resourcev1.ResourceClaimConsumerReference{Resource: "services", Name: "web", UID: "super-uid"},
			)), allocated("gpu-1"),
		},
		"drivers' conditions, with the tenant's names": {
			nobody, with(allocated("gpu-1"), device(superDefault+"/web", 0)), with(allocated("gpu-1"), device("default/web", 3)),
		},
	}
	v := view
	v.Lookup = lookup(map[string]client.Object{
		"Pod " + superDefault + "/web": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web-uid"}},
		"Pod " + superDefault + "/job": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "job-uid"}},
	})
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := &resourcev1.ResourceClaim{ObjectMeta: meta("gpu"), Spec: asking("fast"), Status: tt.was}
			tenant.Generation = 3
			super := &resourcev1.ResourceClaim{ObjectMeta: superMeta("gpu"), Spec: asking("fast"), Status: tt.super}
			want := tenant.DeepCopy()
			want.Status = tt.want
			k.Status(v, tenant, super)
			unchanged(t, "another status than wanted", want, tenant)
			if !k.Same(want, tenant) {
				t.Error("a status is not the same as itself")
			}
		})
	}
}

// TestClaimThatIsBeingDeleted checks that it gets no new consumers, which an
// apiserver would reject.
func TestClaimThatIsBeingDeleted(t *testing.T) {
	k := kindOf[kinds.Down[*resourcev1.ResourceClaim]](t, ResourceClaim())
	v := view
	v.Lookup = lookup(map[string]client.Object{
		"Pod " + superDefault + "/web": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web-uid"}},
		"Pod " + superDefault + "/job": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job", UID: "job-uid"}},
	})
	tenant := &resourcev1.ResourceClaim{ObjectMeta: meta("gpu"), Status: allocated("gpu-1")}
	tenant.DeletionTimestamp = new(metav1.Unix(1700000000, 0))
	tenant.Status.ReservedFor = usedBy("web", "web-uid", "gone", "gone-uid")
	super := &resourcev1.ResourceClaim{ObjectMeta: superMeta("gpu"), Status: allocated("gpu-1")}
	super.Status.ReservedFor = usedBy("job", "super-uid", "web", "super-uid")
	k.Status(v, tenant, super)
	if diff := cmp.Diff(usedBy("web", "web-uid"), tenant.Status.ReservedFor); diff != "" {
		t.Errorf("consumers (-want +got):\n%s", diff)
	}
}

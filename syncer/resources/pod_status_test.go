package resources

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestPodStatusComesUp(t *testing.T) {
	terminated := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
	}
	waiting := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: message}}
	}
	const inside, outside = "no default/web of blue", "no " + superDefault + "/web of team-71a1c3-blue"
	tests := map[string]struct{ super, want corev1.PodStatus }{
		"other fields": {
			corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}}, HostIP: "192.0.2.1",
				StartTime: new(metav1.Unix(1700000000, 0)), QOSClass: corev1.PodQOSBurstable, Reason: "Evicted",
				ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, RestartCount: 2}},
			},
			corev1.PodStatus{
				Phase: corev1.PodRunning, PodIP: "10.1.0.1", PodIPs: []corev1.PodIP{{IP: "10.1.0.1"}}, HostIP: "192.0.2.1",
				StartTime: new(metav1.Unix(1700000000, 0)), QOSClass: corev1.PodQOSBurstable, Reason: "Evicted",
				ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, RestartCount: 2}},
			},
		},
		"the super cluster's names are taken out of every text": {
			corev1.PodStatus{
				Message:                    outside,
				Conditions:                 []corev1.PodCondition{{Type: corev1.PodReady, Message: outside}},
				InitContainerStatuses:      []corev1.ContainerStatus{{Name: "init", State: waiting(outside), LastTerminationState: terminated(outside)}},
				ContainerStatuses:          []corev1.ContainerStatus{{Name: "app", State: terminated(outside), LastTerminationState: waiting(outside)}},
				EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", State: waiting(outside), LastTerminationState: terminated(outside)}},
			},
			corev1.PodStatus{
				Message:                    inside,
				Conditions:                 []corev1.PodCondition{{Type: corev1.PodReady, Message: inside}},
				InitContainerStatuses:      []corev1.ContainerStatus{{Name: "init", State: waiting(inside), LastTerminationState: terminated(inside)}},
				ContainerStatuses:          []corev1.ContainerStatus{{Name: "app", State: terminated(inside), LastTerminationState: waiting(inside)}},
				EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "debug", State: waiting(inside), LastTerminationState: terminated(inside)}},
			},
		},
		"of containers that the super cluster added is said nothing": {
			corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "injected-init"}, {Name: "init", Ready: true}},
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", Ready: true}, {Name: "injected", Ready: true}},
			},
			corev1.PodStatus{
				InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", Ready: true}},
				ContainerStatuses:     []corev1.ContainerStatus{{Name: "app", Ready: true}},
			},
		},
		"resources as the node gave them": {
			corev1.PodStatus{
				Resources: &corev1.ResourceRequirements{Limits: cpus("2")}, AllocatedResources: cpus("1"),
				ContainerStatuses: []corev1.ContainerStatus{{
					Name: "app", Resources: &corev1.ResourceRequirements{Limits: cpus("2")}, AllocatedResources: cpus("1"),
				}},
			},
			corev1.PodStatus{
				Resources: &corev1.ResourceRequirements{Limits: cpus("2")}, AllocatedResources: cpus("1"),
				ContainerStatuses: []corev1.ContainerStatus{{
					Name: "app", Resources: &corev1.ResourceRequirements{Limits: cpus("2")}, AllocatedResources: cpus("1"),
				}},
			},
		},
		"a node that is only nominated is none": {
			corev1.PodStatus{Phase: corev1.PodPending, NominatedNodeName: "node-1"}, corev1.PodStatus{Phase: corev1.PodPending},
		},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod(withContainers)
			tenant.Status.Message = "what it was"
			want := tenant.DeepCopy()
			want.Status = tt.want
			k.Status(view, tenant, &corev1.Pod{ObjectMeta: superMeta("web"), Status: tt.super})
			if diff := cmp.Diff(want, tenant, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the tenant's pod (-want +got):\n%s", diff)
			}
		})
	}
}

// withContainers adds a container of each type to a pod.
func withContainers(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: "init"}}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
}

// cpus returns a quantity of CPU.
func cpus(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
}

// TestPodStatusKeepsWhatTheTenantsClusterSays checks fields that the super
// cluster's admission changes, or that have other names there.
func TestPodStatusKeepsWhatTheTenantsClusterSays(t *testing.T) {
	side := func(name string, qos corev1.PodQOSClass) corev1.PodStatus {
		return corev1.PodStatus{
			ResourceClaimStatuses:                []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new(name)}},
			ExtendedResourceClaimStatus:          &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: name},
			NodeAllocatableResourceClaimStatuses: []corev1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: name}},
			QOSClass:                             qos,
		}
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	tenant, super := tenantPod(), &corev1.Pod{ObjectMeta: superMeta("web"), Status: side("web-gpu-xyz12", corev1.PodQOSBurstable)}
	tenant.Status = side("web-gpu-abc34", corev1.PodQOSBestEffort)
	was := tenant.DeepCopy()
	k.Status(view, tenant, super)
	if diff := cmp.Diff(was, tenant, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the tenant's pod (-before +after):\n%s", diff)
	}
	if !k.Same(was, tenant) {
		t.Error("the same status differs")
	}
}

// TestPodStatusShowsNoSuperNames checks that messages are translated in all
// fields, including future ones.
func TestPodStatusShowsNoSuperNames(t *testing.T) {
	super := fill(&corev1.Pod{})
	if n := setMessages(reflect.ValueOf(&super.Status), superDefault); n < 10 {
		t.Fatalf("found only %d messages", n)
	}
	tenant := tenantPod()
	tenant.Spec = fill(&corev1.Pod{}).Spec
	kindOf[kinds.Down[*corev1.Pod]](t, Pod()).Status(view, tenant, super)
	if len(tenant.Status.ContainerStatuses) == 0 || len(tenant.Status.InitContainerStatuses) == 0 {
		t.Fatal("no status of a container was synced up")
	}
	data, err := json.Marshal(tenant.Status)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), blue.Key) {
		t.Errorf("the tenant reads the cluster key in %s", data)
	}
}

// setMessages sets every field called Message, at any depth, and returns their
// number.
func setMessages(v reflect.Value, text string) (n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			n += setMessages(v.Elem(), text)
		}
	case reflect.Slice:
		for i := range v.Len() {
			n += setMessages(v.Index(i), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Name == "Message" && f.Type.Kind() == reflect.String:
				v.Field(i).SetString(text)
				n++
			case f.IsExported():
				n += setMessages(v.Field(i), text)
			}
		}
	default: // has no message
	}
	return n
}

// TestPodStatusGeneration checks that the tenant's generation counts the
// tenant's changes, and the copy's those of the copy.
func TestPodStatusGeneration(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	tests := map[string]struct {
		tenant, tenantObserved int64
		super, superObserved   int64
		want                   int64
	}{
		"the kubelet has observed all changes":   {3, 1, 7, 7, 3},
		"the node is behind":                     {3, 2, 7, 6, 2},
		"the kubelet has observed no change":     {3, 0, 7, 0, 0},
		"a node that does not count generations": {3, 0, 0, 0, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := tenantPod()
			tenant.Generation, tenant.Status.ObservedGeneration = tt.tenant, tt.tenantObserved
			super := &corev1.Pod{ObjectMeta: superMeta("web")}
			super.Generation, super.Status.ObservedGeneration = tt.super, tt.superObserved
			super.Status.Conditions = []corev1.PodCondition{{ObservedGeneration: tt.superObserved}, {ObservedGeneration: 1}}
			k.Status(view, tenant, super)
			if got := tenant.Status.ObservedGeneration; got != tt.want {
				t.Errorf("the observed generation is %d, want %d", got, tt.want)
			}
			for _, c := range tenant.Status.Conditions {
				if c.ObservedGeneration > tt.want {
					t.Errorf("a condition has seen generation %d, and the pod %d", c.ObservedGeneration, tt.want)
				}
			}
		})
	}
}

func TestSamePodStatus(t *testing.T) {
	one := func() corev1.PodStatus {
		return corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1, 0)},
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(2, 0)},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "app", RestartCount: 1}},
		}
	}
	tests := map[string]struct {
		change func(*corev1.PodStatus)
		want   bool
	}{
		"no change":                         {func(*corev1.PodStatus) {}, true},
		"when a condition changed":          {func(s *corev1.PodStatus) { s.Conditions[1].LastTransitionTime = metav1.Unix(9, 0) }, true},
		"when a condition was probed":       {func(s *corev1.PodStatus) { s.Conditions[1].LastProbeTime = metav1.Unix(9, 0) }, true},
		"a condition's observed generation": {func(s *corev1.PodStatus) { s.Conditions[1].ObservedGeneration = 9 }, true},
		"the kubelet's observed generation": {func(s *corev1.PodStatus) { s.ObservedGeneration = 9 }, false},
		"an empty list for none":            {func(s *corev1.PodStatus) { s.PodIPs = []corev1.PodIP{} }, true},
		"a condition's status":              {func(s *corev1.PodStatus) { s.Conditions[1].Status = corev1.ConditionFalse }, false},
		"a condition's reason":              {func(s *corev1.PodStatus) { s.Conditions[1].Reason = "x" }, false},
		"a condition's message":             {func(s *corev1.PodStatus) { s.Conditions[1].Message = "x" }, false},
		"a condition more":                  {func(s *corev1.PodStatus) { s.Conditions = append(s.Conditions, corev1.PodCondition{}) }, false},
		"no conditions":                     {func(s *corev1.PodStatus) { s.Conditions = nil }, false},
		"the phase":                         {func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed }, false},
		"a restart":                         {func(s *corev1.PodStatus) { s.ContainerStatuses[0].RestartCount++ }, false},
		"an address":                        {func(s *corev1.PodStatus) { s.PodIP = "10.1.0.1" }, false},
		"when the pod started":              {func(s *corev1.PodStatus) { s.StartTime = new(metav1.Unix(9, 0)) }, false},
	}
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := &corev1.Pod{Status: one()}, &corev1.Pod{Status: one()}
			tt.change(&b.Status)
			if got := k.Same(a, b); got != tt.want {
				t.Errorf("Same = %t, want %t", got, tt.want)
			}
			if got := k.Same(b, a); got != tt.want {
				t.Errorf("the other way round, Same = %t, want %t", got, tt.want)
			}
		})
	}
}

// TestStatusPatchArrives checks that the patch from one status to another,
// applied by an apiserver, results in exactly that status, including the order
// of its lists; otherwise each reconcile would patch again.
func TestStatusPatchArrives(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			tenant, super := tenantPod(withGates("Condition0", "Condition1")), &corev1.Pod{ObjectMeta: superMeta("web")}
			tenant.Spec.Containers = []corev1.Container{{Name: "c0"}, {Name: "c1"}, {Name: "c2"}}
			tenant.Status, super.Status = randomStatus(random), randomStatus(random)

			shown := tenant.DeepCopy()
			k.Status(view, shown, super)
			patch, err := client.StrategicMergeFrom(tenant).Data(shown)
			if err != nil {
				t.Fatal(err)
			}
			was, err := json.Marshal(tenant)
			if err != nil {
				t.Fatal(err)
			}
			patched, err := strategicpatch.StrategicMergePatch(was, patch, corev1.Pod{})
			if err != nil {
				t.Fatal(err)
			}
			got := &corev1.Pod{}
			if err := json.Unmarshal(patched, got); err != nil {
				t.Fatal(err)
			}
			if !k.Same(got, shown) {
				t.Errorf("after the patch %s the status is another (-want +got):\n%s", patch, cmp.Diff(shown.Status, got.Status))
			}
		})
	}
}

// randomStatus returns a status with some conditions, addresses and containers,
// in any order.
func randomStatus(random *rand.Rand) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodRunning}
	for _, i := range random.Perm(5)[:random.IntN(6)] {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type:               corev1.PodConditionType(fmt.Sprint("Condition", i)),
			Status:             []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}[random.IntN(2)],
			LastTransitionTime: metav1.Unix(random.Int64N(9)+1, 0),
		})
	}
	for _, i := range random.Perm(3)[:random.IntN(4)] {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: fmt.Sprint("10.0.0.", i)})
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: fmt.Sprint("192.0.2.", i)})
	}
	for _, i := range random.Perm(3)[:random.IntN(4)] {
		c := corev1.ContainerStatus{Name: fmt.Sprint("c", i), RestartCount: random.Int32N(3)}
		if random.IntN(2) == 0 {
			c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Unix(1, 0)}
		} else {
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "Waiting"}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, c)
	}
	return status
}

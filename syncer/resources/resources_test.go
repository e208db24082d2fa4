package resources

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TestKindsAreComplete: what the engine relies on without asking.
func TestKindsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All(Agent{}, nil) {
		v := reflect.ValueOf(k)
		name := v.FieldByName("Name").String()
		set := func(field string) bool { f := v.FieldByName(field); return f.IsValid() && !f.IsZero() }
		if seen[name] {
			t.Errorf("two kinds are called %s", name)
		}
		seen[name] = true
		if object := v.FieldByName("Object"); object.IsNil() || object.Type().Elem().Name() != name {
			t.Errorf("%s: the object is a %s", name, object.Type())
		}
		if list := v.FieldByName("List"); list.IsNil() || list.Elem().Type().Elem().Name() != name+"List" {
			t.Errorf("%s: the list is a %s", name, list.Elem().Type())
		}
		for _, field := range []string{"Desired", "Merge"} {
			if !set(field) {
				t.Errorf("%s has no %s", name, field)
			}
		}
		if set("SuperKey") != set("TenantKey") {
			t.Errorf("%s translates keys one way only", name)
		}
		if v.FieldByName("Same").IsValid() && set("Same") != set("Status") {
			t.Errorf("%s has one of Status and Same, and needs both or none", name)
		}
		if mirror := v.FieldByName("Mirror"); mirror.IsValid() && !mirror.IsNil() {
			for i := range mirror.Elem().NumField() {
				if mirror.Elem().Field(i).IsNil() {
					t.Errorf("%s: the mirror has no %s", name, mirror.Elem().Type().Field(i).Name)
				}
			}
		}
	}
	for _, name := range []string{
		"Namespace", "ServiceAccount", "ConfigMap", "Secret", "Service", "Endpoints", "EndpointSlice", "Ingress", "NetworkPolicy",
		"PodDisruptionBudget", "ResourceClaim", "ResourceClaimTemplate", "Pod", "Node", "Event",
		"PersistentVolumeClaim", "PersistentVolume", "StorageClass", "VolumeAttributesClass", "CSIDriver", "PriorityClass", "IngressClass",
		"RuntimeClass", "DeviceClass",
	} {
		if !seen[name] {
			t.Errorf("%s is not carried", name)
		}
	}
}

// TestKindsLeaveSharedObjectsAlone: objects come out of caches that all workers share. No function changes one, and none lets
// what it returns or writes share memory with one, for the client writes the server's answer into that.
func TestKindsLeaveSharedObjectsAlone(t *testing.T) {
	for _, k := range All(Agent{}, nil) {
		switch k := k.(type) {
		case kinds.Down[*corev1.Namespace]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*corev1.ServiceAccount]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*corev1.ConfigMap]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*corev1.Secret]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*corev1.Service]:
			t.Run(k.Name, func(t *testing.T) {
				leavesAloneDown(t, k, func(s *corev1.Service) {
					s.Spec.ExternalIPs, s.Spec.LoadBalancerIP, s.Spec.LoadBalancerClass = nil, "", nil
				})
			})
		case kinds.Down[*endpoints]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*discoveryv1.EndpointSlice]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*networkingv1.Ingress]:
			t.Run(k.Name, func(t *testing.T) {
				leavesAloneDown(t, k, func(i *networkingv1.Ingress) { i.Spec.DefaultBackend = nil })
			})
		case kinds.Down[*networkingv1.NetworkPolicy]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*policyv1.PodDisruptionBudget]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*resourcev1.ResourceClaim]:
			t.Run(k.Name, func(t *testing.T) {
				leavesAloneDown(t, k, func(c *resourcev1.ResourceClaim) { c.Status.Allocation = nil })
			})
		case kinds.Down[*resourcev1.ResourceClaimTemplate]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Down[*corev1.Pod]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, everyPodField) })
		case kinds.Up[*corev1.Node]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*corev1.Event]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Down[*corev1.PersistentVolumeClaim]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneDown(t, k, nil) })
		case kinds.Up[*corev1.PersistentVolume]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*storagev1.StorageClass]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*storagev1.VolumeAttributesClass]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*storagev1.CSIDriver]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*schedulingv1.PriorityClass]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*networkingv1.IngressClass]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*nodev1.RuntimeClass]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		case kinds.Up[*resourcev1.DeviceClass]:
			t.Run(k.Name, func(t *testing.T) { leavesAloneUp(t, k) })
		default:
			t.Errorf("nobody has looked at %T", k)
		}
	}
}

// everyPodField makes of a filled pod one that goes down, and in which every field is one that is translated.
func everyPodField(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	for c := range containersOf(&pod.Spec) {
		c.SecurityContext.WindowsOptions.GMSACredentialSpec, c.SecurityContext.WindowsOptions.GMSACredentialSpecName = nil, nil
	}
	pod.Spec.ReadinessGates[0].ConditionType = pod.Status.Conditions[0].Type
	for i, path := range []string{"metadata.namespace", "metadata.uid"} {
		pod.Spec.Volumes[i].ConfigMap.Name = "kube-root-ca.crt"
		pod.Spec.Volumes[i].DownwardAPI.Items[i].FieldRef.FieldPath = path
		source := &pod.Spec.Volumes[i].Projected.Sources[1]
		source.ServiceAccountToken, source.ClusterTrustBundle, source.PodCertificate = nil, nil, nil
		source.ConfigMap.Name = "kube-root-ca.crt"
		source.DownwardAPI.Items[i].FieldRef.FieldPath = path
		for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			containers[i].EnvFrom[i].ConfigMapRef.Name = "kube-root-ca.crt"
			containers[i].Env[i].ValueFrom.ConfigMapKeyRef.Name = "kube-root-ca.crt"
			containers[i].Env[i].ValueFrom.FieldRef.FieldPath = path
		}
	}
}

func leavesAloneDown[T client.Object](t *testing.T, k kinds.Down[T], change func(T)) {
	t.Helper()
	tenant, super := fill(clone(k.Object)), fill(clone(k.Object))
	super.SetNamespace("another")
	if change != nil {
		change(tenant)
	}
	wasTenant, wasSuper := clone(tenant), clone(super)
	check := func(after string) {
		t.Helper()
		unchanged(t, "the tenant's object, by "+after+",", wasTenant, tenant)
		unchanged(t, "the copy, by "+after+",", wasSuper, super)
	}

	desired, err := k.Desired(view, tenant)
	if err != nil {
		t.Fatal(err)
	}
	check("Desired")
	wasDesired, written := clone(desired), clone(desired)
	scribble(desired)
	check("writing into what Desired returned")

	if k.Admit != nil {
		_ = k.Admit(view, tenant)
		check("Admit")
	}
	merged := clone(super)
	k.Merge(merged, written)
	check("Merge")
	unchanged(t, "the desired object, by Merge,", wasDesired, written)

	for _, sub := range k.Subresources {
		scribbled := clone(super)
		sub.Merge(view, scribbled, tenant)
		check(sub.Name)
		scribble(scribbled)
		check("writing into what " + sub.Name + " wrote")
	}
	if k.TenantKey != nil {
		k.TenantKey(super)
	}
	if k.Replace != nil {
		k.Replace(super, written)
	}
	if k.Skip != nil {
		k.Skip(view, tenant)
	}
	if k.References != nil {
		k.References(tenant)
	}
	if k.Claims != nil {
		k.Claims(super)
	}
	check("a question")
	unchanged(t, "the desired object, by a question,", wasDesired, written)

	if k.Back != nil {
		shown := clone(tenant)
		k.Back(view, shown, super)
		check("Back")
		scribble(shown)
		check("writing into what Back wrote")
	}
	if k.Status != nil {
		shown := clone(tenant)
		k.Status(view, shown, super)
		check("Status")
		k.Same(shown, tenant)
		scribble(shown)
		check("writing into what Status wrote")
	}
	if m := k.Mirror; m != nil {
		m.Started(tenant)
		m.Node(super)
		m.GracePeriodSeconds(tenant)
		bound := m.Bound(tenant, "node-1")
		check("the mirror")
		scribble(bound)
		check("writing into what Bound returned")
	}
}

func leavesAloneUp[T client.Object](t *testing.T, k kinds.Up[T]) {
	t.Helper()
	super, tenant := fill(clone(k.Object)), fill(clone(k.Object))
	behind := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	wasSuper, wasTenant, wasBehind := clone(super), clone(tenant), clone(behind)
	check := func(after string) {
		t.Helper()
		unchanged(t, "the super cluster's object, by "+after+",", wasSuper, super)
		unchanged(t, "the tenant's object, by "+after+",", wasTenant, tenant)
		unchanged(t, "the object behind, by "+after+",", wasBehind, behind)
	}

	view := kinds.View{
		Tenant: blue, Namespace: "default", Lookup: func(schema.GroupKind, client.ObjectKey, types.UID) client.Object { return behind },
	}
	desired := k.Desired(view, super)
	if reflect.ValueOf(desired).IsNil() {
		t.Fatal("nothing is shown")
	}
	check("Desired")
	wasDesired, written := clone(desired), clone(desired)
	scribble(desired)
	check("writing into what Desired returned")

	k.Merge(clone(tenant), written)
	check("Merge")
	if k.Status != nil {
		k.Status(clone(tenant), written)
		check("Status")
	}
	if k.Replace != nil {
		k.Replace(tenant, written)
	}
	if k.Namespace != nil {
		k.Namespace(super)
	}
	check("a question")
	unchanged(t, "the desired object", wasDesired, written)
	if k.Back != nil {
		back := clone(super)
		k.Back(view, back, tenant)
		check("Back")
		scribble(back)
		check("writing into what Back wrote")
	}
}

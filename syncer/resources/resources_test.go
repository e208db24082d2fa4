package resources

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TestKindsAreComplete checks what the engine relies on.
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
}

// TestKindsLeaveSharedObjectsAlone checks that no function changes its
// arguments, which come from caches that all workers share, and that no result
// shares memory with them, since the client decodes the server's answer into
// it.
func TestKindsLeaveSharedObjectsAlone(t *testing.T) {
	for _, flow := range All(Agent{}, nil) {
		k := flow.Erase()
		t.Run(k.Name, func(t *testing.T) {
			if k.Up != nil {
				leavesAloneUp(t, k.Up)
				return
			}
			leavesAloneDown(t, k.Down, synced()[k.Name])
		})
	}
}

// synced returns what a filled object of a kind lacks or has too much of to be
// synced.
func synced() map[string]func(client.Object) {
	return map[string]func(client.Object){
		"Service": func(obj client.Object) {
			s := obj.(*corev1.Service)
			s.Spec.ExternalIPs, s.Spec.LoadBalancerIP, s.Spec.LoadBalancerClass = nil, "", nil
		},
		"Ingress":       func(obj client.Object) { obj.(*networkingv1.Ingress).Spec.DefaultBackend = nil },
		"ResourceClaim": func(obj client.Object) { obj.(*resourcev1.ResourceClaim).Status.Allocation = nil },
		"Pod":           func(obj client.Object) { everyPodField(obj.(*corev1.Pod)) },
	}
}

// everyPodField changes a filled pod so that it is synced down, with all fields
// that are translated.
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

func leavesAloneDown(t *testing.T, k *kinds.Down[client.Object], change func(client.Object)) {
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

func leavesAloneUp(t *testing.T, k *kinds.Up[client.Object]) {
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
	if desired == nil {
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

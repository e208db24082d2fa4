package integration

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// offer has the objects that the super cluster offers to the tenants of a
// population.
type offer struct {
	storage, devices string // the names of classes
}

// samples returns objects of each kind that is synced down, for one namespace
// of a tenant. Add a row for a new kind.
func samples(o offer) map[string]func(ns, name string) []client.Object {
	return map[string]func(ns, name string) []client.Object{
		"ServiceAccount": func(ns, name string) []client.Object {
			return []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}}
		},
		"ConfigMap": func(ns, name string) []client.Object {
			return []client.Object{configMap(ns, name, map[string]string{"key": "value"})}
		},
		"Secret": func(ns, name string) []client.Object {
			return []client.Object{secret(ns, name, map[string]string{"key": "value"})}
		},
		"Service": func(ns, name string) []client.Object { return []client.Object{service(ns, name)} },
		"Endpoints": func(ns, name string) []client.Object {
			s := service(ns, "by-hand-"+name)
			s.Spec.Selector = nil
			return []client.Object{s, byHand(ns, s.Name, "10.1.2.3")}
		},
		"EndpointSlice": func(ns, name string) []client.Object {
			s := service(ns, "sliced-"+name)
			s.Spec.Selector = nil
			return []client.Object{s, kit.EndpointSlice(ns, s.Name, s.Name, "10.1.2.4")}
		},
		"Ingress": func(ns, name string) []client.Object { return []client.Object{withCertificate(ns, name, name)} },
		"NetworkPolicy": func(ns, name string) []client.Object {
			return []client.Object{&networkingv1.NetworkPolicy{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{
					From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}},
				}}},
			}}
		},
		"PodDisruptionBudget": func(ns, name string) []client.Object {
			return []client.Object{&policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
				Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: byApp(name)},
			}}
		},
		"ResourceClaim": func(ns, name string) []client.Object {
			return []client.Object{
				deviceClaim(ns, name, o.devices),
				kit.Pod(ns, "with-device-"+name, using(corev1.PodResourceClaim{ResourceClaimName: &name})),
			}
		},
		"ResourceClaimTemplate": func(ns, name string) []client.Object {
			return []client.Object{
				&resourcev1.ResourceClaimTemplate{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
					Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: asking(o.devices)},
				},
				kit.Pod(ns, "with-own-device-"+name, using(corev1.PodResourceClaim{ResourceClaimTemplateName: &name})),
			}
		},
		"PersistentVolumeClaim": func(ns, name string) []client.Object {
			return []client.Object{claim(ns, name, o.storage), kit.Pod(ns, "with-volume-"+name, withClaim(name))}
		},
		"Pod": func(ns, name string) []client.Object {
			return []client.Object{kit.Pod(ns, name, withConfigMap(name), withSecret(name))}
		},
	}
}

var _ = It("A population has samples of each kind that tenants declare", func() {
	all := samples(offer{})
	for _, flow := range resources.All(resources.Agent{}, nil) {
		if k := flow.Erase(); k.Down != nil && k.Name != "Namespace" {
			Expect(all).To(HaveKey(k.Name), "test/integration/population_test.go: samples needs a row for %s", k.Name)
		}
	}
})

// offerAll creates the objects that a population needs in the super cluster,
// until the specs end.
func offerAll(ctx context.Context, most int) offer {
	GinkgoHelper()
	offerCertified(ctx)
	name, _ := offerClasses(ctx, publicClass)
	o := offer{storage: storageClass(ctx).Name, devices: "devices-" + name}
	offerPublicly(ctx, deviceClass(o.devices))
	var numbers []string
	for i := range most {
		numbers = append(numbers, fmt.Sprint("d", i))
	}
	for part := range slices.Chunk(numbers, resourcev1.ResourceSliceMaxDevices) {
		shelf := devices(part...)
		shelf.Name += "-" + part[0]
		shelf.Spec.Pool.Name = shelf.Name
		kit.Create(ctx, super.Client, shelf)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, shelf)).To(Succeed()) })
	}
	playDriver()
	return o
}

// populate creates objects of each kind in a namespace of a tenant, and returns
// their number.
func populate(ctx context.Context, t *local.Tenant, o offer, ns string, times int, change ...func(client.Object)) int {
	GinkgoHelper()
	kit.ShouldExist(ctx, t.Client, asShown(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: o.devices}}))
	made := 0
	declare := func(objects ...client.Object) {
		for _, obj := range objects {
			for _, f := range change {
				f(obj)
			}
			kit.Create(ctx, t.Client, obj)
			made++
		}
	}
	declare(kit.Namespace(ns))
	for _, objects := range samples(o) {
		for i := range times {
			declare(objects(ns, fmt.Sprintf("x%02d", i))...)
		}
	}
	return made
}

// shouldBePopulated waits until both sides of a tenant agree, with at least one
// object of each kind that is synced.
func shouldBePopulated(ctx context.Context, t *local.Tenant) {
	GinkgoHelper()
	Eventually(super.Differences).WithContext(ctx).WithArguments(t).WithTimeout(6 * kit.Soon).WithPolling(10 * kit.Poll).Should(BeEmpty())
	Eventually(waiting).WithContext(ctx).WithArguments(t).WithTimeout(6 * kit.Soon).WithPolling(10 * kit.Poll).Should(BeEmpty())
	for _, k := range resources.All(resources.Agent{}, nil) {
		Eventually(synced).WithContext(ctx).WithArguments(t, k).WithTimeout(2*kit.Soon).
			Should(BeNumerically(">", 0), "no %s is synced: has samples a row for it?", nameOf(k))
	}
}

// waiting describes the pods of a tenant that do not run yet and its claims
// that are not bound.
func waiting(ctx context.Context, t *local.Tenant) ([]string, error) {
	all, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	if err := errors.Join(t.Client.List(ctx, all), t.Client.List(ctx, claims)); err != nil {
		return nil, err
	}
	var not []string
	for _, p := range all.Items {
		if p.Status.Phase != corev1.PodRunning {
			not = append(not, fmt.Sprintf("pod %s/%s %s %v", p.Namespace, p.Name, p.Status.Phase, p.Status.Conditions))
		}
	}
	for _, c := range claims.Items {
		if c.Status.Phase != corev1.ClaimBound {
			not = append(not, fmt.Sprintf("claim %s/%s %s", c.Namespace, c.Name, c.Status.Phase))
		}
	}
	return not, nil
}

// synced returns the number of a tenant's objects of a kind that are synced:
// copies in the super cluster, or the tenant's objects for a kind that is
// synced up.
func synced(ctx context.Context, t *local.Tenant, k kinds.Flow) (int, error) {
	list := emptyList(k)
	if !flowsDown(k) {
		err := t.Client.List(ctx, list, client.MatchingLabels{names.FromSuper: "true"})
		return meta.LenList(list), err
	}
	err := super.Client.List(ctx, list, ofTenant(t))
	return meta.LenList(list), err
}

// copiesOf returns the copies of a kind in one namespace of a tenant; none of a
// kind that is synced up.
func copiesOf(ctx context.Context, t *local.Tenant, k kinds.Flow, ns string) []client.Object {
	GinkgoHelper()
	if !flowsDown(k) {
		return nil
	}
	list := emptyList(k)
	Expect(super.Client.List(ctx, list, ofTenant(t), client.InNamespace(t.Super(ns)))).To(Succeed())
	var copies []client.Object
	Expect(meta.EachListItem(list, func(item runtime.Object) error {
		// Controllers of the super cluster propagate the labels and annotations
		// of a copy to its children.
		obj, above := item.(client.Object), item.DeepCopyObject().(client.Object)
		above.SetNamespace(ns)
		if obj.GetNamespace() != "" && kit.Get(ctx, t.Client, above) == nil && string(above.GetUID()) == obj.GetAnnotations()[names.UID] {
			copies = append(copies, obj)
		}
		return nil
	})).To(Succeed())
	return copies
}

// ofTenant selects the copies of a tenant's objects.
func ofTenant(t *local.Tenant) client.MatchingLabels {
	return client.MatchingLabels{names.VCName: t.VC.Name, names.VCNamespace: t.VC.Namespace}
}

func flowsDown(k kinds.Flow) bool { return strings.Contains(reflect.TypeOf(k).Name(), "Down[") }

func emptyList(k kinds.Flow) client.ObjectList {
	return reflect.ValueOf(k).FieldByName("List").Interface().(client.ObjectList).DeepCopyObject().(client.ObjectList)
}

func nameOf(k kinds.Flow) string { return reflect.ValueOf(k).FieldByName("Name").String() }

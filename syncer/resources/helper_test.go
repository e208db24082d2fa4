package resources

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

// blue is the tenant of these tests.
var blue = translate.Tenant{
	Key:       "team-71a1c3-blue",
	Name:      "blue",
	Namespace: "team",
	UID:       "vc-uid",
	RootUID:   "root-uid",
	Weight:    1,
	Policy:    tenancyv1alpha1.TenantPolicy{EndpointCIDRs: []tenancyv1alpha1.CIDR{"192.0.2.0/24", "2001:db8::/32"}},
}

// view is the view of blue without other objects. Every class is offered except
// hidden ones.
var view = kinds.View{
	Tenant: blue, Namespace: "default",
	Lookup: lookup(nil), Digest: digest(), Copy: copyOf(nil), Rivals: rivals(nil), Offers: func(_, name string) bool { return name != "hidden" },
	RunsAt: func(address string) bool { return strings.HasPrefix(address, "10.1.") },
}

// digest returns the digest of the tenant's copies in a namespace of the super
// cluster.
func digest(policies ...*networkingv1.NetworkPolicy) func(string) any {
	return func(kind string) any {
		if kind != "NetworkPolicy" {
			return nil
		}
		return digestPolicies(policies)
	}
}

// copyOf returns the only copy of the tenant in a namespace of the super
// cluster.
func copyOf(one client.Object) func(kind, name string) client.Object {
	return func(_, name string) client.Object {
		if one == nil || one.GetName() != name {
			return nil
		}
		return one
	}
}

// rivals are the super cluster's objects of other owners by their claims.
func rivals(claimed map[string]client.Object) func(claim string) ([]client.Object, error) {
	return func(claim string) ([]client.Object, error) {
		if obj := claimed[claim]; obj != nil {
			return []client.Object{obj}, nil
		}
		return nil, nil
	}
}

// offering returns a view of a tenant that is offered these classes of a kind,
// and no others.
func offering(kind string, names ...string) kinds.View {
	v := view
	v.Offers = func(k, name string) bool { return k == kind && slices.Contains(names, name) }
	return v
}

// superDefault is the name in the super cluster of blue's default namespace.
const superDefault = "team-71a1c3-blue-default"

// kindOf is a kind with its own type.
func kindOf[K kinds.Flow](t *testing.T, k kinds.Flow) K {
	t.Helper()
	typed, ok := k.(K)
	if !ok {
		t.Fatalf("the kind is a %T", k)
	}
	return typed
}

// meta returns the metadata of a tenant's object.
func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, UID: "tenant-uid"}
}

// superMeta returns the metadata of its copy.
func superMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: superDefault, Name: name, UID: "super-uid"}
}

// allowing returns a view of a tenant whose policy allows these labels and
// annotations of a kind.
func allowing(kind string, labels, annotations []string) kinds.View {
	v := view
	v.Tenant.Sync.Metadata = []tenancyv1alpha1.MetadataSync{{Kinds: []string{kind}, Labels: labels, Annotations: annotations}}
	return v
}

// down returns the copy that the engine creates of a tenant's object: the
// desired object of the kind, with metadata.
func down[T client.Object](t *testing.T, k kinds.Down[T], tenant T) T {
	t.Helper()
	return downIn(t, view, k, tenant)
}

// downIn returns the copy in a view.
func downIn[T client.Object](t *testing.T, v kinds.View, k kinds.Down[T], tenant T) T {
	t.Helper()
	desired, err := k.Desired(v, tenant)
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(tenant)
	superKey := blue.SuperKey(key)
	if k.SuperKey != nil {
		superKey = k.SuperKey(blue, key)
	}
	translate.Merge(desired, v.Tenant.Down(k.Name, tenant, superKey))
	desired.SetNamespace(superKey.Namespace)
	desired.SetName(superKey.Name)
	return desired
}

// clone returns a deep copy with its own type.
func clone[T client.Object](obj T) T { return obj.DeepCopyObject().(T) }

// unchanged fails the test if an object has changed.
func unchanged(t *testing.T, what string, before, after client.Object) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("%s changed (-before +after):\n%s", what, diff)
	}
}

// fill sets all fields of an object: no pointer, slice or map is nil, so that
// all shared memory is found.
func fill[T client.Object](obj T) T {
	fillValue(reflect.ValueOf(obj).Elem(), 0)
	return obj
}

// deepest is the depth to which fill descends: the API's types are not nested
// deeper, except for JSON schemas.
const deepest = 20

func fillValue(v reflect.Value, depth int) {
	if depth > deepest {
		return
	}
	switch v.Interface().(type) {
	case resource.Quantity:
		v.Set(reflect.ValueOf(resource.MustParse("1500m")))
		return
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.Unix(1700000000, 0)))
		return
	case metav1.MicroTime:
		v.Set(reflect.ValueOf(metav1.NewMicroTime(metav1.Unix(1700000000, 0).Time)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text-", depth))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 4)) // with capacity, so that an append writes to shared memory
		for i := range v.Len() {
			fillValue(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillValue(key, depth+1)
		fillValue(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i), depth+1)
			}
		}
	case reflect.Interface: // the decoded form of a runtime.RawExtension
	default:
		panic(fmt.Sprintf("the API has no fields of type %s", v.Type()))
	}
}

// scribble overwrites all the memory that an object can reach.
func scribble(obj client.Object) { scribbleValue(reflect.ValueOf(obj)) }

func scribbleValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scribbleValue(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Slice:
		v = v.Slice(0, v.Cap())
		for i := range v.Len() {
			scribbleValue(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			scribbleValue(v.MapIndex(key))
		}
		v.Clear()
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scribbleValue(v.Field(i))
			}
		}
	default: // is held by value
	}
}

// lookup finds a tenant's objects by kind and super key.
func lookup(objects map[string]client.Object) func(schema.GroupKind, client.ObjectKey, types.UID) client.Object {
	return func(kind schema.GroupKind, key client.ObjectKey, uid types.UID) client.Object {
		if uid != "super-uid" {
			return nil
		}
		return objects[kind.String()+" "+key.String()]
	}
}

// tenantPod returns a pod as the tenant's apiserver stores it.
func tenantPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: meta("web"),
		Spec: corev1.PodSpec{
			ServiceAccountName: "default",
			Containers:         []corev1.Container{{Name: "app", Image: "nginx:1"}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

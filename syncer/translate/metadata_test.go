package translate

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

type pairs = map[string]string

// superKey is the key of the copies of these tests.
var superKey = types.NamespacedName{Namespace: "team-71a1c3-blue-default", Name: "web"}

// opened is a tenant whose policy allows all keys of ConfigMaps that a policy
// can allow.
var opened = func() Tenant {
	t := blue
	t.Sync.Metadata = []tenancyv1alpha1.MetadataSync{{Kinds: []string{"ConfigMap"}, Labels: []string{"*"}, Annotations: []string{"*"}}}
	return t
}()

// object is a tenant's object.
func object(labels, annotations pairs) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", UID: "web-uid", Labels: labels, Annotations: annotations,
	}}
}

// stampedLabels and stampedAnnotations return those of every copy, and more.
func stampedLabels(more pairs) pairs {
	out := pairs{"tenancy.x-k8s.io/vcname": "blue", "tenancy.x-k8s.io/vcnamespace": "team"}
	maps.Copy(out, more)
	return out
}

func stampedAnnotations(more pairs) pairs {
	out := pairs{
		"tenancy.x-k8s.io/cluster":     "team-71a1c3-blue",
		"tenancy.x-k8s.io/uid":         "web-uid",
		"tenancy.x-k8s.io/namespace":   "default",
		"tenancy.x-k8s.io/vcname":      "blue",
		"tenancy.x-k8s.io/vcnamespace": "team",
	}
	maps.Copy(out, more)
	return out
}

func TestTemplate(t *testing.T) {
	selective := opened
	selective.Opaque = []string{"opaque.io/"}
	template := metav1.ObjectMeta{
		Name: "web", Namespace: "default", Finalizers: []string{"example.com/x"},
		Labels:      pairs{"app": "web", "opaque.io/a": "1", "tenancy.x-k8s.io/vcname": "green"},
		Annotations: pairs{"note": "x", "opaque.io/a": "1", "tenancy.x-k8s.io/cluster": "team-000000-green"},
	}
	was := *template.DeepCopy()
	got := selective.Template("ConfigMap", template)
	want := metav1.ObjectMeta{
		Labels:      pairs{"app": "web", names.VCName: selective.Name, names.VCNamespace: selective.Namespace},
		Annotations: pairs{"note": "x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	clear(got.Labels)
	clear(got.Annotations)
	if diff := cmp.Diff(was, template); diff != "" {
		t.Errorf("the template changed with what was made of it (-before +after):\n%s", diff)
	}
}

func TestDown(t *testing.T) {
	selective := opened
	selective.Opaque = []string{"opaque.io/", "secretly"}
	selective.Transparent = []string{"transparent.io/"}

	tests := map[string]struct {
		tenant              Tenant
		obj                 metav1.Object
		labels, annotations pairs
	}{
		"without metadata there are the stamps alone": {
			blue, object(nil, nil), stampedLabels(nil), stampedAnnotations(nil),
		},
		"nothing is synced down by default": {
			blue, object(pairs{"app": "web", "example.com/a": "1"}, pairs{"note": "x", "example.com/b": "2"}),
			stampedLabels(nil), stampedAnnotations(nil),
		},
		"keys that the policy allows are synced down": {
			opened, object(pairs{"a": "1", "example.com/b": "2"}, pairs{"b": "2", "a": "1", "example.com/c": "3"}),
			stampedLabels(pairs{"a": "1", "example.com/b": "2"}),
			stampedAnnotations(pairs{
				"a": "1", "b": "2", "example.com/c": "3",
				"tenancy.x-k8s.io/labels": "a,example.com/b", "tenancy.x-k8s.io/annotations": "a,b,example.com/c",
			}),
		},
		"labels that no policy lets through stay": {
			opened, object(pairs{
				"pod-security.kubernetes.io/enforce":   "privileged",
				"resource.kubernetes.io/admin-access":  "true",
				"kubernetes.io/metadata.name":          "kube-system",
				"tenancy.x-k8s.io/vcname":              "green",
				"tenancy.x-k8s.io/cluster":             "team-000000-green",
				"tenancy.x-k8s.io/anything":            "",
				"labels.tenancy.x-k8s.io/example.com_": "",
				"a":                                    "1",
			}, nil),
			stampedLabels(pairs{"a": "1"}), stampedAnnotations(pairs{"tenancy.x-k8s.io/labels": "a"}),
		},
		"annotations that no policy lets through stay": {
			opened, object(nil, pairs{
				"tenancy.x-k8s.io/cluster":                "team-000000-green",
				"tenancy.x-k8s.io/vcuid":                  "green-uid",
				"tenancy.x-k8s.io/labels":                 "a",
				"kubernetes.io/enforce-mountable-secrets": "true",
				"kubernetes.io/config.mirror":             "1",
				"pv.kubernetes.io/bind-completed":         "yes",
				"resource.kubernetes.io/pod-claim-name":   "gpu",
				"volume.kubernetes.io/selected-node":      "node-9",
				"volume.beta.kubernetes.io/storage-class": "forbidden",
			}),
			stampedLabels(nil), stampedAnnotations(nil),
		},
		"a key that only resembles our domain is synced down": {
			opened, object(pairs{"my-tenancy.x-k8s.io/a": "1"}, nil),
			stampedLabels(pairs{"my-tenancy.x-k8s.io/a": "1"}),
			stampedAnnotations(pairs{"tenancy.x-k8s.io/labels": "my-tenancy.x-k8s.io/a"}),
		},
		"opaque prefixes stay": {
			selective, object(
				pairs{"opaque.io/a": "1", "secretly-b": "2", "c": "3"}, pairs{"opaque.io/a": "1", "secretly": "2", "c": "3"},
			),
			stampedLabels(pairs{"c": "3"}),
			stampedAnnotations(pairs{
				"c": "3", "tenancy.x-k8s.io/labels": "c", "tenancy.x-k8s.io/annotations": "c",
			}),
		},
		"transparent prefixes are synced up, and so not down": {
			selective, object(pairs{"transparent.io/a": "1"}, pairs{"transparent.io/b": "2"}),
			stampedLabels(nil), stampedAnnotations(nil),
		},
		"owner references are synced down as an annotation": {
			blue, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "web", UID: "web-uid",
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "rs-uid", Controller: new(true),
				}},
			}},
			stampedLabels(nil),
			stampedAnnotations(pairs{"tenancy.x-k8s.io/ownerReferences": `[{"apiVersion":"apps/v1","kind":"ReplicaSet",` +
				`"name":"web","uid":"rs-uid","controller":true}]`}),
		},
		"the name of a cluster-scoped object is its namespace": {
			blue, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod", UID: "web-uid"}},
			stampedLabels(nil), stampedAnnotations(pairs{"tenancy.x-k8s.io/namespace": "prod"}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := metav1.ObjectMeta{
				Namespace: superKey.Namespace, Name: superKey.Name, Labels: tt.labels, Annotations: tt.annotations,
			}
			if diff := cmp.Diff(want, tt.tenant.Down("ConfigMap", tt.obj, superKey)); diff != "" {
				t.Errorf("metadata in the super cluster (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDownTakesNothingElse checks that finalizers, deletion timestamps,
// generated names and similar fields stay in the tenant.
func TestDownTakesNothingElse(t *testing.T) {
	obj := object(pairs{"a": "1"}, nil)
	obj.Finalizers = []string{"example.com/hold"}
	obj.GenerateName, obj.ResourceVersion, obj.Generation = "web-", "7", 3
	obj.DeletionTimestamp, obj.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(5))
	obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	want := opened.Down("ConfigMap", object(pairs{"a": "1"}, nil), superKey)
	if diff := cmp.Diff(want, opened.Down("ConfigMap", obj, superKey)); diff != "" {
		t.Errorf("metadata in the super cluster (-without +with):\n%s", diff)
	}
}

func TestDownChangesNoInput(t *testing.T) {
	obj := object(pairs{"a": "1", "tenancy.x-k8s.io/x": "2"}, pairs{"b": "2", "kubectl.kubernetes.io/x": "3"})
	before := obj.DeepCopy()
	meta := opened.Down("ConfigMap", obj, superKey)
	meta.Labels["a"], meta.Annotations["b"] = "scribbled", "scribbled"
	if diff := cmp.Diff(before, obj); diff != "" {
		t.Errorf("the tenant's object changed (-before +after):\n%s", diff)
	}
}

func TestMerge(t *testing.T) {
	down := func(labels, annotations pairs) metav1.ObjectMeta {
		return opened.Down("ConfigMap", object(labels, annotations), superKey)
	}
	owned := func() metav1.ObjectMeta {
		obj := object(nil, nil)
		obj.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web"}}
		return opened.Down("ConfigMap", obj, superKey)
	}

	tests := map[string]struct {
		// was is the metadata in the super cluster, edit a change that another
		// client makes to it.
		was                 metav1.ObjectMeta
		edit                func(*metav1.ObjectMeta)
		desired             metav1.ObjectMeta
		labels, annotations pairs
	}{
		"a new copy gets what is desired": {
			desired: down(pairs{"a": "1"}, pairs{"b": "2"}),
			labels:  stampedLabels(pairs{"a": "1"}),
			annotations: stampedAnnotations(pairs{
				"b": "2", "tenancy.x-k8s.io/labels": "a", "tenancy.x-k8s.io/annotations": "b",
			}),
		},
		"a value that the tenant changed changes": {
			was:         down(pairs{"a": "1"}, nil),
			desired:     down(pairs{"a": "2"}, nil),
			labels:      stampedLabels(pairs{"a": "2"}),
			annotations: stampedAnnotations(pairs{"tenancy.x-k8s.io/labels": "a"}),
		},
		"keys that the tenant removed vanish": {
			was:         down(pairs{"a": "1", "b": "2"}, pairs{"c": "3", "d": "4"}),
			desired:     down(pairs{"b": "2"}, nil),
			labels:      stampedLabels(pairs{"b": "2"}),
			annotations: stampedAnnotations(pairs{"tenancy.x-k8s.io/labels": "b"}),
		},
		"keys that the super cluster added stay": {
			was: down(pairs{"a": "1"}, pairs{"c": "3"}),
			edit: func(m *metav1.ObjectMeta) {
				m.Labels["super.io/x"], m.Annotations["super.io/y"] = "its", "own"
			},
			desired:     down(nil, nil),
			labels:      stampedLabels(pairs{"super.io/x": "its"}),
			annotations: stampedAnnotations(pairs{"super.io/y": "own"}),
		},
		"changes to the tenant's keys are reverted": {
			was: down(pairs{"a": "1", "b": "2"}, pairs{"c": "3", "d": "4"}),
			edit: func(m *metav1.ObjectMeta) {
				m.Labels["a"], m.Annotations["c"] = "edited", "edited"
				delete(m.Labels, "b")
				delete(m.Annotations, "d")
			},
			desired: down(pairs{"a": "1", "b": "2"}, pairs{"c": "3", "d": "4"}),
			labels:  stampedLabels(pairs{"a": "1", "b": "2"}),
			annotations: stampedAnnotations(pairs{
				"c": "3", "d": "4", "tenancy.x-k8s.io/labels": "a,b", "tenancy.x-k8s.io/annotations": "c,d",
			}),
		},
		"changes to the stamps are reverted": {
			was: down(pairs{"a": "1"}, nil),
			edit: func(m *metav1.ObjectMeta) {
				m.Labels[names.VCName] = "green"
				delete(m.Labels, names.VCNamespace)
				m.Annotations[names.UID] = "another"
				delete(m.Annotations, names.Cluster)
			},
			desired:     down(pairs{"a": "1"}, nil),
			labels:      stampedLabels(pairs{"a": "1"}),
			annotations: stampedAnnotations(pairs{"tenancy.x-k8s.io/labels": "a"}),
		},
		"stamps survive a list of keys that names them": {
			was: down(nil, nil),
			edit: func(m *metav1.ObjectMeta) {
				m.Annotations[names.Labels], m.Annotations[names.Annotations] = names.VCName, names.Cluster+","+names.Annotations
			},
			desired:     down(nil, nil),
			labels:      stampedLabels(nil),
			annotations: stampedAnnotations(nil),
		},
		"removed owner references are removed": {
			was:         owned(),
			desired:     down(nil, nil),
			labels:      stampedLabels(nil),
			annotations: stampedAnnotations(nil),
		},
		"an object without stamps gets them, and keeps its keys": {
			was:         metav1.ObjectMeta{Labels: pairs{"x": "1"}, Annotations: pairs{"y": "2"}},
			desired:     down(nil, nil),
			labels:      stampedLabels(pairs{"x": "1"}),
			annotations: stampedAnnotations(pairs{"y": "2"}),
		},
		"empty metadata": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			was := tt.was.DeepCopy()
			if tt.edit != nil {
				tt.edit(was)
			}
			super := &corev1.ConfigMap{ObjectMeta: *was}
			desired := *tt.desired.DeepCopy()

			Merge(super, desired)
			if diff := cmp.Diff(tt.labels, super.Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.annotations, super.Annotations, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}

			once := super.DeepCopy()
			Merge(super, desired)
			if diff := cmp.Diff(once, super); diff != "" {
				t.Errorf("a second merge changed something (-once +twice):\n%s", diff)
			}
		})
	}
}

// TestMergeSharesNothing checks that the object may be a shallow copy, and that
// the desired metadata can be used again.
func TestMergeSharesNothing(t *testing.T) {
	desired := opened.Down("ConfigMap", object(pairs{"a": "1"}, pairs{"b": "2"}), superKey)
	cached := &corev1.ConfigMap{ObjectMeta: *desired.DeepCopy()}
	before, want := cached.DeepCopy(), *desired.DeepCopy()

	super := *cached
	Merge(&super, desired)
	super.Labels["a"], super.Annotations["b"] = "scribbled", "scribbled"
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("the cached object changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(want, desired); diff != "" {
		t.Errorf("the desired metadata changed (-before +after):\n%s", diff)
	}
}

func TestUp(t *testing.T) {
	tests := map[string]struct {
		transparent   []string
		tenant, super pairs
		want          pairs
	}{
		"without transparent prefixes nothing is synced up": {
			nil, pairs{"a": "1"}, pairs{"x.io/a": "1", "b": "2"}, pairs{"a": "1"},
		},
		"a transparent key is synced up": {
			[]string{"x.io/"}, pairs{"a": "1"}, pairs{"x.io/a": "1", "y.io/b": "2"}, pairs{"a": "1", "x.io/a": "1"},
		},
		"it is synced up to an object without any": {[]string{"x.io/"}, nil, pairs{"x.io/a": "1"}, pairs{"x.io/a": "1"}},
		"any of several prefixes suffices": {
			[]string{"x.io/", "y"}, nil, pairs{"x.io/a": "1", "y.io/b": "2", "z": "3"}, pairs{"x.io/a": "1", "y.io/b": "2"},
		},
		"the super cluster's value wins": {
			[]string{"x.io/"}, pairs{"x.io/a": "mine"}, pairs{"x.io/a": "1"}, pairs{"x.io/a": "1"},
		},
		"a transparent key that the super cluster does not have is removed": {
			[]string{"x.io/"}, pairs{"x.io/a": "1", "b": "2"}, pairs{"b": "3"}, pairs{"b": "2"},
		},
		"keys of our domain are not synced up, whatever the prefix": {
			[]string{"tenancy.x-k8s.io/", "t"},
			pairs{"tenancy.x-k8s.io/from-super": "true"},
			pairs{"tenancy.x-k8s.io/cluster": "team-71a1c3-blue", "tenancy.x-k8s.io/from-super": "false"},
			pairs{"tenancy.x-k8s.io/from-super": "true"},
		},
		"empty metadata": {[]string{"x.io/"}, nil, pairs{"b": "2"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tenant := blue
			tenant.Transparent = tt.transparent
			// Labels and annotations follow the same rules, and must not be
			// confused.
			obj, want := object(maps.Clone(tt.tenant), nil), object(tt.want, nil)
			super := object(maps.Clone(tt.super), nil)
			tenant.Up(obj, super)
			if diff := cmp.Diff(want, obj, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			obj, want = object(nil, maps.Clone(tt.tenant)), object(nil, tt.want)
			tenant.Up(obj, object(nil, super.Labels))
			if diff := cmp.Diff(want, obj, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.super, super.Labels, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the super cluster's object changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestUpSharesNothing checks that a shallow copy of a cached object suffices.
func TestUpSharesNothing(t *testing.T) {
	tenant := blue
	tenant.Transparent = []string{"x.io/"}
	cached := object(pairs{"x.io/old": "1", "a": "1"}, pairs{"x.io/old": "1"})
	before := cached.DeepCopy()
	shown := *cached
	tenant.Up(&shown, object(pairs{"x.io/new": "1"}, pairs{"x.io/new": "1"}))
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Errorf("the cached object changed (-before +after):\n%s", diff)
	}
}

// FuzzMetadataRoundTrip takes metadata of a tenant's object at two times, and
// metadata that the super cluster added to its copy.
func FuzzMetadataRoundTrip(f *testing.F) {
	f.Add("app=web\nk8s-app=x", "app=web2", "super.io/x=1", "opaque.io/")
	f.Add("tenancy.x-k8s.io/cluster=forged\ntenancy.x-k8s.io/labels=a,b", "", "a=1\nb=2", "x")
	f.Add("tenancy.x-k8s.io=1\ntenancy.x-k8s.io/vcuid=2", "tenancy.x-k8s.io/annotations=app", "app=1", "t")
	f.Add("opaque.io/a=1\nopaque.io=2", "opaque.io/a=2", "opaque.io/a=3", "opaque.io/")
	f.Fuzz(func(t *testing.T, earlier, later, own, opaque string) {
		tenant := opened
		if opaque != "" {
			tenant.Opaque = []string{opaque}
		}
		first, second, mine := parse(earlier), parse(later), parse(own)
		maps.DeleteFunc(mine, func(key, _ string) bool { return strings.HasPrefix(key, names.Domain+"/") })
		down := func(m pairs) metav1.ObjectMeta { return tenant.Down("ConfigMap", object(m, m), superKey) }

		super := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: mine, Annotations: mine}}
		Merge(super, down(first))
		checkCopy(t, super, first, tenant)
		Merge(super, down(second))
		checkCopy(t, super, second, tenant)

		once := super.DeepCopy()
		Merge(super, down(second))
		if diff := cmp.Diff(once, super); diff != "" {
			t.Errorf("a second merge changed something (-once +twice):\n%s", diff)
		}

		Merge(super, down(nil))
		checkOwn(t, super.Labels, mine, goes(first, tenant), goes(second, tenant))
		checkOwn(t, super.Annotations, mine, goes(first, tenant), goes(second, tenant))
	})
}

// parse reads lines of key=value, and drops those with invalid keys.
func parse(text string) pairs {
	out := pairs{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if len(validation.IsQualifiedName(strings.ToLower(key))) == 0 {
			out[key] = value
		}
	}
	return out
}

// goes is a second implementation of the part of a tenant's metadata that is
// synced down if the policy allows all that it can.
func goes(in pairs, tenant Tenant) pairs {
	out := maps.Clone(in)
	never := regexp.MustCompile(`^([^/]*\.)?tenancy\.x-k8s\.io(/|$)|^(pod-security|pv|volume|volume\.beta)\.kubernetes\.io/|` +
		`^kubernetes\.io/(config\..*|enforce-mountable-secrets$|metadata\.name$)|^resource\.kubernetes\.io/(admin-access|pod-claim-name)$`)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return never.MatchString(key) || slices.ContainsFunc(tenant.Opaque, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return out
}

// checkCopy checks that the copy has the declared keys, that the annotations
// list them, and that all keys of our domain are those of the syncer.
func checkCopy(t *testing.T, super metav1.Object, declared pairs, tenant Tenant) {
	t.Helper()
	labels, annotations := super.GetLabels(), super.GetAnnotations()
	for what, c := range map[string]struct {
		got, want pairs
		note      string
	}{
		"label":      {labels, goes(declared, tenant), annotations[names.Labels]},
		"annotation": {annotations, goes(declared, tenant), annotations[names.Annotations]},
	} {
		for key, value := range c.want {
			if c.got[key] != value {
				t.Errorf("%s %q is %q, want %q", what, key, c.got[key], value)
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(c.want)), listed(c.note), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("the note of the %ss (-want +got):\n%s", what, diff)
		}
	}
	ours := func(m pairs) pairs {
		m = maps.Clone(m)
		maps.DeleteFunc(m, func(key, _ string) bool {
			return !strings.HasPrefix(key, names.Domain+"/") || key == names.Labels || key == names.Annotations
		})
		return m
	}
	if diff := cmp.Diff(stampedLabels(nil), ours(labels)); diff != "" {
		t.Errorf("our labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(stampedAnnotations(nil), ours(annotations)); diff != "" {
		t.Errorf("our annotations (-want +got):\n%s", diff)
	}
}

// checkOwn checks that after the tenant removed its keys the copy has those of
// the super cluster that the tenant never set.
func checkOwn(t *testing.T, got, own pairs, declared ...pairs) {
	t.Helper()
	want := maps.Clone(own)
	for _, d := range declared {
		for key := range d {
			delete(want, key)
		}
	}
	got = maps.Clone(got)
	maps.DeleteFunc(got, func(key, _ string) bool { return strings.HasPrefix(key, names.Domain+"/") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the super cluster's own keys (-want +got):\n%s", diff)
	}
}

package patch

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestPod(t *testing.T) {
	type patches = []tenancyv1alpha1.SyncPatch
	cases := map[string]struct {
		patches patches
		want    func(pod *corev1.Pod)
	}{
		"NoPatch": {nil, func(*corev1.Pod) {}},
		"ObjectsOnTheWay": {
			patches{fields("/spec/nodeSelector/pool", "tenant.name")},
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "blue"} },
		},
		"OfSelf": {
			patches{fields("/spec/nodeSelector/example.com~1tier", "self.metadata.labels.tier")},
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"example.com/tier": "gold"} },
		},
		"Append": {
			patches{fields("/spec/tolerations/-", `{'key': 'pool', 'operator': 'Exists'}`, "/spec/tolerations/-", `{'key': 'b'}`)},
			func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Key: "pool", Operator: corev1.TolerationOpExists}, {Key: "b"}}
			},
		},
		"Element": {
			patches{fields("/spec/containers/0/image", "'mirror.example/' + object.spec.containers[0].image")},
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "mirror.example/web:1" },
		},
		"AllElements": {
			patches{fields("/spec/containers", `object.spec.containers.map(c, c.transformMap(k, v, k == 'image' ? dyn('x') : v))`)},
			func(p *corev1.Pod) { p.Spec.Containers[0].Image = "x" },
		},
		"Integer": {
			patches{fields("/spec/containers/0/ports/0/containerPort", "object.spec.containers[0].ports[0].containerPort + 1000")},
			func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = 1080 },
		},
		"WholeDouble": {
			patches{fields("/spec/priority", "double(7)")},
			func(p *corev1.Pod) { p.Spec.Priority = new(int32(7)) },
		},
		"Quantity": {
			patches{fields("/spec/containers/0/resources/limits/cpu", "object.spec.containers[0].resources.requests.cpu")},
			func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			},
		},
		"Bool": {
			patches{fields("/spec/automountServiceAccountToken", "!has(object.spec.volumes)")},
			func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) },
		},
		"OptionalThere": {
			patches{fields("/spec/runtimeClassName", "self.metadata.?labels.?tier")},
			func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("gold") },
		},
		"OptionalNotThere": {
			patches{fields("/spec/serviceAccountName", "self.metadata.?labels.?runtime")},
			func(p *corev1.Pod) { p.Spec.ServiceAccountName = "" },
		},
		"NullRemoves": {
			patches{fields("/spec/serviceAccountName", "null", "/metadata/labels/app", "null", "/spec/containers/0/ports/0", "null")},
			func(p *corev1.Pod) {
				p.Spec.ServiceAccountName = ""
				delete(p.Labels, "app")
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{}
			},
		},
		"NullRemovesWhatIsNotThere": {
			patches{fields("/spec/nodeSelector/pool", "null", "/spec/volumes/3", "null", "/spec/hostname/x", "null", "/spec/tolerations/-", "null")},
			func(*corev1.Pod) {},
		},
		"WhenTrue": {
			patches{when("object.metadata.labels.app == 'web'", fields("/spec/hostname", "'a'"))},
			func(p *corev1.Pod) { p.Spec.Hostname = "a" },
		},
		"WhenFalse": {
			patches{when("object.metadata.labels.app != 'web'", fields("/spec/hostname", "'a'"))},
			func(*corev1.Pod) {},
		},
		"WhenDynamic": {
			patches{when("object.?spec.?hostNetwork.orValue(true)", fields("/spec/hostname", "'a'"))},
			func(p *corev1.Pod) { p.Spec.Hostname = "a" },
		},
		"OneAfterTheOther": {
			patches{
				fields("/spec/hostname", "'a'", "/spec/subdomain", "object.spec.hostname + 'b'"),
				when("object.spec.subdomain == 'ab'", fields("/spec/hostname", "object.spec.subdomain + 'c'")),
			},
			func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "abc", "ab" },
		},
		"LaterRepairsEarlier": {
			patches{fields("/spec/bogus", "1", "/spec/bogus", "null", "/spec/hostname", "'a'")},
			func(p *corev1.Pod) { p.Spec.Hostname = "a" },
		},
		"JSONPatch": {
			patches{operations(`[
				{"op": "test", "path": "/spec/containers/0/ports/0/containerPort", "value": 80},
				{"op": "add", "path": "/spec/nodeSelector", "value": {}},
				{"op": "add", "path": "/spec/nodeSelector/a~1b", "value": "<c>"},
				{"op": "copy", "from": "/spec/serviceAccountName", "path": "/spec/hostname"},
				{"op": "move", "from": "/spec/serviceAccountName", "path": "/spec/subdomain"},
				{"op": "replace", "path": "/spec/containers/0/ports/0/containerPort", "value": 81},
				{"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 9007199254740993},
				{"op": "remove", "path": "/spec/containers/0/resources"}
			]`)},
			func(p *corev1.Pod) {
				p.Spec.NodeSelector = map[string]string{"a/b": "<c>"}
				p.Spec.Hostname, p.Spec.Subdomain, p.Spec.ServiceAccountName = "default", "default", ""
				p.Spec.Containers[0].Ports[0].ContainerPort = 81
				p.Spec.ActiveDeadlineSeconds = new(int64(9007199254740993))
				p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			},
		},
		"JSONPatchThenExpression": {
			patches{
				operations(`[{"op": "add", "path": "/spec/hostname", "value": "a"}]`),
				fields("/spec/subdomain", "object.spec.hostname"),
			},
			func(p *corev1.Pod) { p.Spec.Hostname, p.Spec.Subdomain = "a", "a" },
		},
		"Libraries": {
			patches{fields(
				"/metadata/annotations/lower", "'ABC'.lowerAscii()",
				"/metadata/annotations/replaced", "'a-b'.replace('-', '_')",
				"/metadata/annotations/joined", "['a', 'b'].join(',')",
				"/metadata/annotations/split", "'a,b'.split(',')[1]",
				"/metadata/annotations/formatted", "'%s=%d'.format(['a', 1])",
				"/metadata/annotations/matched", "'web-0'.matches('^web-[0-9]{1,3}$') ? 'yes' : 'no'",
				"/metadata/annotations/base64", "base64.encode(b'abc')",
				"/metadata/annotations/sets", "sets.contains(['a', 'b'], ['a']) ? 'yes' : 'no'",
				"/metadata/annotations/index", "string('abc'.indexOf('c'))",
				"/metadata/annotations/sum", "string(size([1, 2] + [3]))",
				"/metadata/annotations/flat", "string(size([[1], [2, 3]].flatten().slice(1, 3)))",
				"/metadata/annotations/number", "2 < 2.5 ? 'yes' : 'no'",
				"/metadata/annotations/sorted", "{'b': 1, 'a': 2, 'c': 3}.map(k, k).sort().join('')",
				"/metadata/annotations/distinct", "['a', 'b', 'a'].distinct().join('')",
				"/metadata/annotations/reversed", "lists.range(3).reverse().map(n, string(n)).join('')",
			)},
			func(p *corev1.Pod) {
				maps.Copy(p.Annotations, map[string]string{
					"lower": "abc", "replaced": "a_b", "joined": "a,b", "split": "b", "formatted": "a=1", "matched": "yes",
					"base64": "YWJj", "sets": "yes", "index": "2", "sum": "3", "flat": "2", "number": "yes",
					"sorted": "abc", "distinct": "ab", "reversed": "210",
				})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tryPod(t, tc.patches...)
			if err != nil {
				t.Fatal(err)
			}
			want := pod()
			tc.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOtherTypedObjects(t *testing.T) {
	pvc, ns := claim(), namespace()
	patches := set(
		tenancyv1alpha1.SyncPatch{Name: "class", Kinds: []string{"PersistentVolumeClaim"}, Set: []tenancyv1alpha1.FieldExpression{
			{Path: "/spec/storageClassName", Expression: "tenant.name + '-' + object.spec.storageClassName"},
			{Path: "/spec/resources/requests/storage", Expression: "'2Gi'"},
		}},
		tenancyv1alpha1.SyncPatch{Name: "label", Kinds: []string{"Namespace"}, Set: []tenancyv1alpha1.FieldExpression{
			{Path: "/metadata/labels/team", Expression: "tenant.namespace"},
			{Path: "/metadata/annotations/scheduler.example~1pool", Expression: "tenant.key"},
		}},
	)
	for kind, object := range map[string]client.Object{"PersistentVolumeClaim": pvc, "Namespace": ns} {
		if err := patches.Apply(t.Context(), kind, object, object.DeepCopyObject().(client.Object), blue); err != nil {
			t.Fatal(err)
		}
	}
	wantPVC, wantNS := claim(), namespace()
	wantPVC.Spec.StorageClassName = new("blue-fast")
	wantPVC.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	wantNS.Labels["team"] = "team"
	wantNS.Annotations["scheduler.example/pool"] = "team-71a1c3-blue"
	if diff := cmp.Diff(wantPVC, pvc); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantNS, ns); diff != "" {
		t.Error(diff)
	}
}

func TestUnstructured(t *testing.T) {
	got, err := tryCertificate(t, fields(
		"/spec/replicas", "object.spec.replicas + 1",
		"/spec/share", "object.spec.share * 2.0",
		"/spec/large", "9007199254740993",
		"/spec/unsigned", "7u",
		"/spec/issuerRef", `{'name': 'super', 'kinds': ['a', {'b': null}], 'old': object.spec.issuerRef}`,
		"/spec/dnsNames/1", "'c.example'",
		"/spec/dnsNames/-", "object.spec.secretName",
		"/spec/duration", "duration('90m')",
		"/spec/from", "timestamp('2026-01-02T03:04:05Z')",
		"/spec/bytes", "b'abc'",
		"/spec/optionals", "[?object.spec.?none, ?object.spec.?secretName, optional.of('x')]",
		"/spec/secretName", "null",
		"/metadata/labels/app", "'web'",
	))
	if err != nil {
		t.Fatal(err)
	}
	want := certificate()
	spec := want.Object["spec"].(map[string]any)
	spec["replicas"], spec["share"], spec["large"], spec["unsigned"] = int64(4), 1.0, int64(9007199254740993), int64(7)
	spec["issuerRef"] = map[string]any{
		"name": "super", "kinds": []any{"a", map[string]any{"b": nil}}, "old": map[string]any{"name": "letsencrypt"},
	}
	spec["dnsNames"] = []any{"a.example", "c.example", "web"}
	spec["duration"], spec["from"], spec["bytes"] = "5400s", "2026-01-02T03:04:05Z", "YWJj"
	spec["optionals"] = []any{"web", "x"}
	delete(spec, "secretName")
	want.SetLabels(map[string]string{"tenancy.x-k8s.io/vcname": "blue", "app": "web"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSelfIsNotChanged checks that self, which is shared by a cache, is
// unchanged, and shares no memory with the copies.
func TestSelfIsNotChanged(t *testing.T) {
	patches := set(
		fields("/spec/all", "self.spec", "/spec/all/issuerRef/name", "'x'", "/spec/issuerRef", "self.spec.issuerRef",
			"/spec/issuerRef/name", "'y'", "/spec/dnsNames", "self.spec.dnsNames", "/spec/dnsNames/0", "'z'"),
		operations(`[{"op": "replace", "path": "/spec/all/dnsNames/0", "value": "z"}]`),
	)
	self, object := certificate(), certificate()
	if err := patches.Apply(t.Context(), certificates, object, self, blue); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(certificate(), self); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(certificate(), object) {
		t.Error("the copy was not changed")
	}
}

// TestErrorsChangeNothing checks that an object is unchanged when a patch
// fails, also if earlier patches succeeded.
func TestErrorsChangeNothing(t *testing.T) {
	for kind, object := range objects() {
		for name, failing := range map[string]tenancyv1alpha1.SyncPatch{
			"set":       fields("/metadata/labels/a", "'b'", "/metadata/labels/app", "object.nothing"),
			"misfit":    fields("/metadata/labels/a", "'b'", "/metadata/labels/app", "5"),
			"when":      when("object.nothing", fields("/metadata/labels/a", "'b'")),
			"jsonPatch": operations(`[{"op": "add", "path": "/metadata/labels/a", "value": "b"}, {"op": "remove", "path": "/nothing"}]`),
			"compile":   fields("/metadata/labels/a", "'b"),
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				before := object.DeepCopyObject()
				patches := set(fields("/metadata/labels/first", "'b'"), failing)
				if err := patches.Apply(t.Context(), kind, object, tenantPod(), blue); err == nil {
					t.Error("no error")
				}
				if diff := cmp.Diff(before, object); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestNothingToDoCostsNothing checks that objects of kinds without patches are
// not converted.
func TestNothingToDoCostsNothing(t *testing.T) {
	object, self := pod(), tenantPod()
	for name, patches := range map[string]*Set{"nil": nil, "empty": set(), "other kinds": set(fields("/a", "1"))} {
		allocs := testing.AllocsPerRun(10, func() {
			if err := patches.Apply(t.Context(), "Service", object, self, blue); err != nil {
				t.Error(err)
			}
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

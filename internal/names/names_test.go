package names

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestClusterKey(t *testing.T) {
	tests := map[string]struct {
		namespace, name string
		uid             types.UID
		want            string
	}{
		// echo -n 7f2c | sha256sum
		"namespace, six digits of the UID's SHA-256, name": {"team", "blue", "7f2c", "team-71a1c3-blue"},
		"dashes are kept": {"team-a", "blue-1", "7f2c", "team-a-71a1c3-blue-1"},
		"a successor of the same name has another key": {"team", "blue", "7f2d", "team-c57de1-blue"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ClusterKey(tt.namespace, tt.name, tt.uid); got != tt.want {
				t.Errorf("ClusterKey(%q, %q, %q) = %q, want %q", tt.namespace, tt.name, tt.uid, got, tt.want)
			}
		})
	}
}

func TestBeginsNamespace(t *testing.T) {
	long := strings.Repeat("k", 60)
	for _, tt := range []struct {
		key, namespace string
		want           bool
	}{
		{"team-71a1c3-blue", SuperNamespace("team-71a1c3-blue", "shop"), true},
		{"team-71a1c3-blue", SuperNamespace("team-71a1c3-blue", strings.Repeat("s", 63)), true},
		{"team-71a1c3-blue", SuperNamespace("team-71a1c4-blue", "shop"), false},
		{"team-71a1c3-blue", "team-71a1c3-blueshop", false},
		{"team-71a1c3-blue", "team-71a1c3-blue", false},
		{"team-71a1c3-blue", "kube-system", false},
		{long, SuperNamespace(long, "shop"), true},
		{long, SuperNamespace("x"+long[1:], "shop"), false},
	} {
		if got := BeginsNamespace(tt.key, tt.namespace); got != tt.want {
			t.Errorf("BeginsNamespace(%q, %q) = %t, want %t", tt.key, tt.namespace, got, tt.want)
		}
	}
}

func TestValidateClusterKey(t *testing.T) {
	tests := map[string]struct {
		key   string
		valid bool
	}{
		"a key as ClusterKey makes them":        {ClusterKey("team", "blue", "7f2c"), true},
		"as long as a namespace's name may be":  {strings.Repeat("k", 63), true},
		"one character too long":                {strings.Repeat("k", 64), false},
		"a VirtualCluster with a dot in a name": {ClusterKey("team", "blue.1", "7f2c"), false},
		"empty":                                 {"", false},
		"upper case":                            {"Team-71a1c3-blue", false},
		"ends in a dash":                        {"team-71a1c3-", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			wrong := ValidateClusterKey(tt.key)
			if valid := len(wrong) == 0; valid != tt.valid {
				t.Errorf("ValidateClusterKey(%q) = %q, want valid: %t", tt.key, wrong, tt.valid)
			}
		})
	}
}

func TestSuperNamespace(t *testing.T) {
	// Each key below is 20 characters long.
	const key = "team-71a1c3-bluebell"
	tests := map[string]struct {
		key, namespace, want string
	}{
		"short":               {key, "default", key + "-default"},
		"dashes are kept":     {key, "a-b--c", key + "-a-b--c"},
		"62 characters, kept": {key, strings.Repeat("n", 41), key + "-" + strings.Repeat("n", 41)},
		"63 characters, hashed, since a hashed name is as long": {
			key, strings.Repeat("n", 42),
			key + "-" + strings.Repeat("n", 31) + "-" + digest(10, key+"-"+strings.Repeat("n", 42)),
		},
		"64 characters": {
			key, strings.Repeat("n", 43),
			key + "-" + strings.Repeat("n", 31) + "-" + digest(10, key+"-"+strings.Repeat("n", 43)),
		},
		"the longest of all": {
			strings.Repeat("k", 63), strings.Repeat("n", 63),
			strings.Repeat("k", 52) + "-" + digest(10, strings.Repeat("k", 63)+"-"+strings.Repeat("n", 63)),
		},
		"dashes where it is cut make room for more of the hash": {
			key, strings.Repeat("n", 27) + "----" + strings.Repeat("n", 20),
			key + "-" + strings.Repeat("n", 27) + "-" + digest(14, key+"-"+strings.Repeat("n", 27)+"----"+strings.Repeat("n", 20)),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := SuperNamespace(tt.key, tt.namespace)
			if got != tt.want {
				t.Errorf("SuperNamespace(%q, %q) =\n     %q\nwant %q", tt.key, tt.namespace, got, tt.want)
			}
			if wrong := validation.IsDNS1123Label(got); len(wrong) > 0 {
				t.Errorf("%q is no name of a namespace: %q", got, wrong)
			}
		})
	}
}

// TestField: each field has an annotation of its own, which is valid.
func TestField(t *testing.T) {
	seen := map[string]string{}
	for _, path := range []string{
		"metadata.labels", "metadata.annotations", "metadata.labels['app']", "metadata.annotations['app']",
		"metadata.labels['" + strings.Repeat("long/", 50) + "']",
	} {
		key := Field(path)
		if was, ok := seen[key]; ok {
			t.Errorf("%s and %s are both kept in %s", path, was, key)
		}
		seen[key] = path
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 || !strings.HasPrefix(key, Domain+"/") {
			t.Errorf("Field(%q) = %q: %q", path, key, wrong)
		}
	}
}

// TestNamespacesOfTenantsDoNotMeet: two tenants whose names and namespaces read
// the same when joined are two tenants.
func TestNamespacesOfTenantsDoNotMeet(t *testing.T) {
	for name, suffix := range map[string]string{
		"short":  "",
		"hashed": strings.Repeat("-and-more", 6),
	} {
		t.Run(name, func(t *testing.T) {
			a := SuperNamespace(ClusterKey("ns", "team", "uid-1"), "a-default"+suffix)
			b := SuperNamespace(ClusterKey("ns", "team-a", "uid-2"), "default"+suffix)
			if a == b {
				t.Errorf("two tenants share the namespace %q", a)
			}
		})
	}
}

// TestNobodyCanChooseAShortenedName: a tenant's namespace may be called like
// the end of a shortened name, and is another.
func TestNobodyCanChooseAShortenedName(t *testing.T) {
	const key = "team-71a1c3-blue"
	for name, long := range map[string]string{
		"cut in a word":      strings.Repeat("n", 60),
		"cut behind a dash":  strings.Repeat("n", 35) + "-" + strings.Repeat("n", 20),
		"cut between dashes": strings.Repeat("n", 20) + strings.Repeat("-", 20) + strings.Repeat("n", 20),
		"as long as may be":  strings.Repeat("n", 63),
		"as short as is cut": strings.Repeat("n", 46),
	} {
		t.Run(name, func(t *testing.T) {
			shortened := SuperNamespace(key, long)
			chosen := strings.TrimPrefix(shortened, key+"-")
			if len(validation.IsDNS1123Label(chosen)) > 0 || chosen == long {
				t.Fatalf("%q does not test anything", chosen)
			}
			if got := SuperNamespace(key, chosen); got == shortened {
				t.Errorf("namespaces %q and %q are both %q", long, chosen, got)
			}
		})
	}
}

// TestKeys: the keys are written into objects and must stay what they are;
// those of the label kind must be valid.
func TestKeys(t *testing.T) {
	want := []string{
		"tenancy.x-k8s.io/cluster", "tenancy.x-k8s.io/uid", "tenancy.x-k8s.io/namespace", "tenancy.x-k8s.io/vcname",
		"tenancy.x-k8s.io/vcnamespace", "tenancy.x-k8s.io/vcuid", "tenancy.x-k8s.io/ownerReferences",
		"tenancy.x-k8s.io/labels", "tenancy.x-k8s.io/annotations", "tenancy.x-k8s.io/from-super",
		"tenancy.x-k8s.io/restartedAt", "tenancy.x-k8s.io/values",
	}
	got := []string{
		Cluster, UID, Namespace, VCName, VCNamespace, VCUID, OwnerReferences, Labels, Annotations, FromSuper, RestartedAt, Values,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, key := range got {
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			t.Errorf("%q is no valid key: %q", key, wrong)
		}
	}
	if AdminKubeconfigSecret != "admin-kubeconfig" || AdminKubeconfigKey != "admin-kubeconfig" {
		t.Errorf("the admin kubeconfig is at %s in %s", AdminKubeconfigKey, AdminKubeconfigSecret)
	}
}

// label is what a name of a namespace looks like, written down a second time.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func FuzzSuperNamespace(f *testing.F) {
	f.Add("team-71a1c3-blue", "default", "kube-system")
	f.Add("team-71a1c3-blue", strings.Repeat("n", 46), strings.Repeat("n", 47))
	f.Add("team-71a1c3-blue", strings.Repeat("n", 50)+"a", strings.Repeat("n", 50)+"b")
	f.Add(strings.Repeat("k", 63), "a", "b")
	f.Add("k", strings.Repeat("n", 62), strings.Repeat("n", 63))
	f.Add("team-71a1c3-blue", "a"+strings.Repeat("-", 61)+"a", "a"+strings.Repeat("-", 60)+"a")
	f.Fuzz(func(t *testing.T, key, a, b string) {
		if !label.MatchString(key) || !label.MatchString(a) || !label.MatchString(b) {
			t.Skip("not the names of namespaces")
		}
		superA, superB := SuperNamespace(key, a), SuperNamespace(key, b)
		if !label.MatchString(superA) {
			t.Errorf("SuperNamespace(%q, %q) = %q, which is no name of a namespace", key, a, superA)
		}
		if again := SuperNamespace(key, a); again != superA {
			t.Errorf("SuperNamespace(%q, %q) = %q, and then %q", key, a, superA, again)
		}
		if (a == b) != (superA == superB) {
			t.Errorf("%q and %q become %q and %q", a, b, superA, superB)
		}
		if head := key + "-"; len(key) < 52 && !strings.HasPrefix(superA, head) {
			t.Errorf("SuperNamespace(%q, %q) = %q, which does not begin with %q", key, a, superA, head)
		}
		// The name that would meet the one that was cut, had it not been cut itself.
		if chosen, ok := strings.CutPrefix(superA, key+"-"); ok && label.MatchString(chosen) && chosen != a {
			if met := SuperNamespace(key, chosen); met == superA {
				t.Errorf("%q and %q both become %q", a, chosen, met)
			}
		}
	})
}

func TestTokenSecret(t *testing.T) {
	if got := TokenSecret("web-0"); !strings.HasPrefix(got, "web-0-tokens-") {
		t.Errorf("the Secret of web-0 is %s", got)
	}
	seen := map[string]string{}
	long := strings.Repeat("a", 240)
	for _, pod := range []string{"a", "a-tokens", "a.b", "a-b", long + "-1", long + "-2", long + ".", strings.Repeat("b", 253)} {
		got := TokenSecret(pod)
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 {
			t.Errorf("the Secret of %s is %s: %v", pod, got, problems)
		}
		if !IsTokenSecret(got) {
			t.Errorf("%s is not known as the Secret of %s", got, pod)
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s have one Secret, %s", pod, other, got)
		}
		seen[got] = pod
	}
}

func TestIsTokenSecret(t *testing.T) {
	for name, want := range map[string]bool{
		TokenSecret("web"):                           true,
		TokenSecret("web-tokens-0123456789"):         true,
		"x" + TokenSecret("web"):                     false,
		TokenSecret("web") + "-2":                    false,
		"api-tokens-0123456789":                      false,
		"-tokens-":                                   false,
		"web":                                        false,
		strings.Repeat("a", 235) + "-tokens-0":       false,
		TokenSecret(strings.Repeat("a", 236)):        true,
		TokenSecret(strings.Repeat("a.", 118) + "a"): true,
	} {
		if got := IsTokenSecret(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

func TestPlatformKubeconfig(t *testing.T) {
	admin, platform := []byte("admin"), []byte("platform")
	for want, secret := range map[string]map[string][]byte{
		"admin":    {AdminKubeconfigKey: admin},
		"platform": {AdminKubeconfigKey: admin, PlatformKubeconfigKey: platform},
		"":         {},
	} {
		if got := string(PlatformKubeconfig(secret)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

package names

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestLabel(t *testing.T) {
	long := strings.Repeat("n", 50)
	tests := map[string]struct{ key, want string }{
		"of a domain":             {"example.com/tier", "labels.tenancy.x-k8s.io/example.com_tier"},
		"with an underscore":      {"example.com/a_b", "labels.tenancy.x-k8s.io/example.com_a_b"},
		"without a domain":        {"istio-injection", "labels.tenancy.x-k8s.io/istio-injection"},
		"of this project":         {"tenancy.x-k8s.io/vcname", "labels.tenancy.x-k8s.io/tenancy.x-k8s.io_vcname"},
		"62 characters, kept":     {"example.com/" + long, "labels.tenancy.x-k8s.io/example.com_" + long},
		"63 characters, hashed":   {"example.com/" + long + "n", "labels.tenancy.x-k8s.io/example.com_" + long[:40] + "-" + digest(10, "example.com/"+long+"n")},
		"an underscore elsewhere": {"a_b", "labels.tenancy.x-k8s.io/a_b-" + digest(59, "a_b")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Label(tt.key); got != tt.want {
				t.Errorf("Label(%q) =\n     %q\nwant %q", tt.key, got, tt.want)
			}
		})
	}
}

// FuzzLabel: the labels of copies are valid, two keys never become one, and
// what is not hashed leads back.
func FuzzLabel(f *testing.F) {
	f.Add("a_b", "a/b")
	f.Add("example.com/x_y", "example.com/x")
	f.Add(strings.Repeat("d", 100)+"/n", strings.Repeat("d", 100)+"/m")
	f.Add("a/b", "labels.tenancy.x-k8s.io/a_b")
	f.Add("a_b-"+digest(59, "a_b"), "a_b")
	f.Add("example.com/"+strings.Repeat("n", 63), "app")
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, key := range []string{a, b} {
			if len(validation.IsQualifiedName(key)) > 0 {
				t.Skip("no object can have this label")
			}
			got := Label(key)
			if wrong := validation.IsQualifiedName(got); len(wrong) > 0 || !Reserved(got) {
				t.Errorf("Label(%q) = %q, reserved %t: %q", key, got, Reserved(got), wrong)
			}
			if back, known := TenantLabel(got); known && back != key {
				t.Errorf("Label(%q) = %q leads back to %q", key, got, back)
			}
		}
		if a != b && Label(a) == Label(b) {
			t.Errorf("%q and %q are both %q", a, b, Label(a))
		}
	})
}

func TestTenantLabel(t *testing.T) {
	for _, key := range []string{"app", "app.kubernetes.io/name", "example.com/a_b", "a/b"} {
		if got, known := TenantLabel(Label(key)); got != key || !known {
			t.Errorf("TenantLabel(Label(%q)) = %q, %t", key, got, known)
		}
	}
	if got, known := TenantLabel("app"); got != "app" || !known {
		t.Errorf("a label that has its own key leads back to %q, %t", got, known)
	}
	if got, known := TenantLabel(Label("a_b")); known {
		t.Errorf("a hashed key leads back to %q", got)
	}
}

func TestReserved(t *testing.T) {
	for key, want := range map[string]bool{
		"tenancy.x-k8s.io/vcname": true, "labels.tenancy.x-k8s.io/app": true, "example.com/a": false, "app": false,
		"my-tenancy.x-k8s.io/a": false, "tenancy.x-k8s.io": true, "example.com/tenancy.x-k8s.io": false,
	} {
		if got := Reserved(key); got != want {
			t.Errorf("Reserved(%q) = %t, want %t", key, got, want)
		}
	}
}

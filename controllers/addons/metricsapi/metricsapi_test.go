package metricsapi

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

func TestAddon(t *testing.T) {
	ca, file := authority(t)
	addon, err := Addon("agent.example:10550", file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := addon.Objects(&tenancyv1alpha1.VirtualCluster{})
	if err != nil {
		t.Fatal(err)
	}
	field := func(kind string, path ...string) any {
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
		if i < 0 {
			t.Fatalf("there is no %s", kind)
		}
		value, _, err := unstructured.NestedFieldNoCopy(objects[i].Object, path...)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	if host := field("Service", "spec", "externalName"); host != "agent.example" {
		t.Errorf("the Service leads to %v", host)
	}
	name, namespace := field("Service", "metadata", "name"), field("Service", "metadata", "namespace")
	if name != field("APIService", "spec", "service", "name") || namespace != field("APIService", "spec", "service", "namespace") {
		t.Error("the APIService leads to another Service")
	}
	if ServerName != name.(string)+"."+namespace.(string)+".svc" {
		t.Errorf("an apiserver does not expect the name %s", ServerName)
	}
	if port := field("APIService", "spec", "service", "port"); fmt.Sprint(port) != "10550" {
		t.Errorf("got port %v", port)
	}
	shown, err := base64.StdEncoding.DecodeString(field("APIService", "spec", "caBundle").(string))
	if err != nil || string(shown) != string(ca.CertPEM) {
		t.Errorf("tenants are shown %q (%v), want the certificate alone", shown, err)
	}
}

// TestRetired: the deleted objects have the names of the created ones, and the
// APIService is the last.
func TestRetired(t *testing.T) {
	_, file := authority(t)
	made, err := Addon("agent.example:10550", file)
	if err != nil {
		t.Fatal(err)
	}
	namesOf := func(a addons.Addon) (all []string) {
		objects, err := a.Objects(&tenancyv1alpha1.VirtualCluster{})
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objects {
			all = append(all, obj.GetKind()+" "+obj.GetNamespace()+"/"+obj.GetName())
		}
		return all
	}
	retired := Retired()
	got, want := namesOf(retired), namesOf(made)
	if !slices.Equal(got, want) || got[len(got)-1] != "APIService /v1beta1.metrics.k8s.io" {
		t.Errorf("got %q, want %q", got, want)
	}
	if made.Retired || !retired.Retired || retired.OptOut != made.OptOut {
		t.Errorf("got %v and %v", made, retired)
	}
}

func TestAddonRefuses(t *testing.T) {
	_, file := authority(t)
	for name, tc := range map[string]struct{ address, file, want string }{
		"no port": {"agent.example", file, "a host and a port"},
		"IPv6":    {"[fd00::7]:10550", file, "DNS name or an IPv4 address"},
		"no file": {"10.0.0.7:10550", "", "no file is given"},
		"no such": {"10.0.0.7:10550", file + ".missing", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Addon(tc.address, tc.file); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// authority makes an authority, and a file with its certificate and its key.
func authority(t *testing.T) (pki.Authority, string) {
	t.Helper()
	ca, err := pki.NewAuthority("vn-agent-ca", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, slices.Concat(ca.CertPEM, ca.KeyPEM), 0o600); err != nil {
		t.Fatal(err)
	}
	return ca, file
}

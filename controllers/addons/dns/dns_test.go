package dns

import (
	"strings"
	"testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestAddon(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	if objects, err := Addon("example/coredns:1").Objects(vc); err != nil || len(objects) > 0 {
		t.Errorf("a tenant without Service addresses of its own gets %v (%v)", objects, err)
	}
	vc.Status.ServiceCIDR, vc.Spec.ClusterDomain = "10.104.16.0/20", "my.domain"
	objects, err := Addon("example/coredns:1").Objects(vc)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for i, obj := range objects {
		kinds[obj.GetKind()] = i
	}
	if len(kinds) != 6 || kinds["Deployment"] < kinds["ServiceAccount"] || kinds["Deployment"] < kinds["ConfigMap"] {
		t.Errorf("the kinds, by their places, are %v; want six, the Deployment after what it needs", kinds)
	}
	for kind, want := range map[string]string{
		"ConfigMap": "kubernetes my.domain", "Deployment": "example/coredns:1", "Service": `"clusterIP":"10.104.16.10"`,
	} {
		data, err := objects[kinds[kind]].MarshalJSON()
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s is without %q (%v): %s", kind, want, err, data)
		}
	}
}

func TestServiceAddress(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.104.16.0/20": "10.104.16.10", "10.0.0.0/28": "10.0.0.10", "10.0.0.0/29": "", "": "", "no": "",
	} {
		if got, err := serviceAddress(cidr); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q (%v), want %q", cidr, got, err, want)
		}
	}
}

// TestAddons: with a shared DNS, each choice of a tenant leads to one Service
// kube-dns, and a CoreDNS that is not asked for is deleted, without the objects
// that the shared DNS has too.
func TestAddons(t *testing.T) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	vc.Status.ServiceCIDR = "10.104.16.0/20"
	for choice, wantDeployment := range map[string]bool{"": false, "dedicated": true, "other": false} {
		services, deployments := 0, 0
		for _, addon := range Addons("example/coredns:1") {
			if !addon.Applies(choice) {
				continue
			}
			objects, err := addon.Objects(vc)
			if err != nil {
				t.Fatal(err)
			}
			for _, obj := range objects {
				switch {
				case obj.GetKind() == "Service":
					services++
				case obj.GetKind() == "Deployment" && !addon.Retired:
					deployments++
				}
			}
			if addon.Retired && objects[len(objects)-1].GetKind() != "Deployment" {
				t.Errorf("the last object of the retired addon is a %s", objects[len(objects)-1].GetKind())
			}
		}
		if services != 1 || (deployments == 1) != wantDeployment {
			t.Errorf("%q: got %d Services and %d Deployments", choice, services, deployments)
		}
	}
}

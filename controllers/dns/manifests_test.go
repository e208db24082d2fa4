package dns

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	objects, err := render(Settings{Image: "example/coredns:1", Domain: "my.domain", Address: "10.104.16.10"})
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

func TestVersionsDiffer(t *testing.T) {
	of := func(image string) string {
		objects, err := render(Settings{Image: image})
		if err != nil {
			t.Fatal(err)
		}
		return versionOf(objects[4])
	}
	first, again, other := of("a"), of("a"), of("b")
	if first != again || first == other {
		t.Errorf("the versions of one Deployment are %s and %s, and %s of another", first, again, other)
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

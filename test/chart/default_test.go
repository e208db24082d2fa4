package chart

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write config/default/workloads.yaml instead of comparing it")

// onlyInDefault are the kinds that config has in no other folder.
var onlyInDefault = []string{"Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"}

const header = "# Written by go test . -run TestDefault -rewrite in test/chart, of charts/virtualcluster.\n"

// TestDefault: kustomize makes the same of config/default as Helm makes of the
// chart with its default values.
func TestDefault(t *testing.T) {
	objects := mustRender(t, "")
	dir := filepath.Join(root, "config/default")
	if *rewrite {
		out := bytes.NewBufferString(header)
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			obj := objects[name]
			if !slices.Contains(onlyInDefault, obj.GetKind()) || name == "Service vc-manager-webhook" {
				continue
			}
			data, err := yaml.Marshal(withoutChart(obj).Object)
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString("---\n")
			out.Write(data)
		}
		if err := os.WriteFile(filepath.Join(dir, "workloads.yaml"), out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	data, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range parse(t, dir, data) {
		want := objects[key(got)]
		switch {
		case key(got) == "Namespace "+namespace:
			continue // of the release
		case want == nil:
			t.Errorf("%s is not in the chart", key(got))
		case key(got) != "Service vc-manager-webhook": // the chart names the port of its container
			if diff := difference(withoutChart(want), withoutChart(got)); diff != "" {
				t.Errorf("%s (-chart +kustomize):\n%s", key(got), diff)
			}
		}
		delete(objects, key(got))
	}
	for name := range objects {
		t.Errorf("%s of the chart is not in config/default", name)
	}
}

// TestKustomizationsAreLabelled: kubectl vc uninstall knows all objects that an
// admin applies with kustomize.
func TestKustomizationsAreLabelled(t *testing.T) {
	for _, folder := range []string{
		"default", "dns", "rbac", "rbac/vc-dns", "rbac/vc-gateway", "rbac/vn-agent", "servicecidr",
	} {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "config", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range built.Resources() {
			if object.GetLabels()["app.kubernetes.io/part-of"] != "virtualcluster" {
				t.Errorf("config/%s: %s has no label", folder, object.CurId())
			}
		}
	}
}

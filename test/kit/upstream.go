package kit

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Upstream are CRDs of another project, as its module has them.
type Upstream struct {
	// RequiredBy is the folder of the module of this repository that requires
	// Module. Files is the pattern of the CRDs' files in it.
	RequiredBy, Module, Files string
}

// Dir returns the folder of the module.
func (u Upstream) Dir(ctx context.Context) string {
	GinkgoHelper()
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	Expect(err).NotTo(HaveOccurred())
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", u.Module)
	download.Dir = filepath.Join(strings.TrimSpace(string(root)), u.RequiredBy)
	var module struct {
		Dir string `json:"Dir"` //nolint:tagliatelle // as the go command writes it
	}
	out, err := download.Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	return module.Dir
}

// Definitions reads the CRDs and changes each.
func (u Upstream) Definitions(ctx context.Context, change ...func(*apiextensionsv1.CustomResourceDefinition)) []*apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(u.Dir(ctx), u.Files))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(files))
	for _, file := range files {
		d := &apiextensionsv1.CustomResourceDefinition{}
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.UnmarshalStrict(data, d)).To(Succeed())
		for _, f := range change {
			f(d)
		}
		all = append(all, d)
	}
	return all
}

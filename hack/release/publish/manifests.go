package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

const (
	chartFolder = "charts/virtualcluster"
	// providers has the folder of each provider for Cluster API.
	providers = "capi/config"
	// installation is the folder that kustomize builds the manifest of.
	installation = "config/default"
)

// chart packages the Helm chart. Helm archives the times of files, so it
// packages a copy in which all files have the time of the release.
func (p Publication) chart(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied := filepath.Join(dir, filepath.Base(chartFolder))
	if err := p.copyFolder(copied, filepath.Join(p.Build.Root, chartFolder)); err != nil {
		return err
	}
	out, err := filepath.Abs(p.Out)
	if err != nil {
		return err
	}
	return p.run(ctx, os.Stderr, "test/chart", "tool", "helm", "package", copied, "--destination", out,
		"--version", strings.TrimPrefix(p.Version, "v"), "--app-version", p.Version)
}

// copyFolder copies a folder. The files get the time of the release.
func (p Publication) copyFolder(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	entries, err := archive.Folder(to)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Chtimes(e.Source, p.Time, p.Time); err != nil {
			return err
		}
	}
	return nil
}

// manifest writes the manifest of an installation. The kustomize is that of the
// kubectl of the Kubernetes release that vc-standalone runs.
func (p Publication) manifest(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp(p.Build.Root, ".install-") // kustomize reads nothing by an absolute path
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization(p.Release, p.Registry)), 0o600); err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	return p.write("install.yaml", func(w io.Writer) error {
		return p.run(ctx, w, "standalone", "run", "-buildvcs=false", "k8s.io/kubernetes/cmd/kubectl", "kustomize", dir)
	})
}

// kustomization selects the images of a release.
func kustomization(release version.Release, registry string) string {
	var y strings.Builder
	fmt.Fprintf(&y, "resources: [../%s]\nimages:\n", installation)
	for _, p := range programs.Images() {
		name := p.Name
		if registry != "" {
			name = strings.TrimSuffix(registry, "/") + "/" + name
		}
		fmt.Fprintf(&y, "- {name: %s, newName: %s, newTag: %q}\n", p.Name, name, imageRelease(release, p).Version)
	}
	return y.String()
}

// components writes what clusterctl reads: the components of both providers, and
// their versions, template and ClusterClass.
func (p Publication) components(ctx context.Context) error {
	for _, provider := range []string{"infrastructure", "control-plane"} {
		err := p.write(provider+"-components.yaml", func(w io.Writer) error {
			return p.run(ctx, w, "capi", "tool", "kustomize", "build", filepath.Join("config", provider))
		})
		if err != nil {
			return err
		}
	}
	for _, name := range []string{"metadata.yaml", "samples/cluster-template.yaml", "samples/clusterclass-nested.yaml"} {
		content, err := os.ReadFile(filepath.Join(p.Build.Root, providers, name))
		if err != nil {
			return fmt.Errorf("read a file for clusterctl: %w", err)
		}
		err = p.write(filepath.Base(name), func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// plugin writes the manifest of the kubectl plugin for krew.
func (p Publication) plugin(ctx context.Context) error {
	const name = "kubectl-vc"
	args := []string{"run", "-buildvcs=false", "./hack/krew", p.Version, version.Source + "/releases/download/" + p.Version}
	for _, platform := range programs.Released() {
		file, err := filepath.Abs(filepath.Join(p.Out, name+"_"+p.Version+"_"+platform.String()+".tar.gz"))
		if err != nil {
			return err
		}
		args = append(args, file)
	}
	return p.write("vc.yaml", func(w io.Writer) error { return p.run(ctx, w, ".", args...) })
}

// run runs the go command in the folder of a module.
func (p Publication) run(ctx context.Context, out io.Writer, module string, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the arguments are the developer's
	command.Dir = filepath.Join(p.Build.Root, module)
	command.Stdout, command.Stderr = out, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("go %s in %s: %w", strings.Join(args, " "), module, err)
	}
	return nil
}

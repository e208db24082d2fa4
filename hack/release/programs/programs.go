// Package programs lists the programs of a release and compiles them.
package programs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Program is a program of a release.
type Program struct {
	Name string
	// Module is the folder of the module that it is compiled in.
	Module string
	// Package is its package if it is another project's, in a version that the
	// module requires. A program of the project is cmd/NAME in its module.
	Package string
	// Tag is that of the image of a program of another project: its version, and
	// the number of the image of this version. Releases with the same tag have the
	// same image. Another version of Go or of its modules needs another number.
	Tag string
	// Image reports whether a container image of it is published.
	Image bool
	// Desktop reports whether an archive is published for macOS, too.
	Desktop     bool
	Description string
}

const (
	linux = "linux"
	// stripped are the linker's flags for a program of another project, which
	// does not change with the version of the release.
	stripped = "-s -w"
	// kubernetesModule is the folder of the module that imports k8s.io/kubernetes.
	kubernetesModule = "standalone"
)

// All returns the programs of a release. A new one is a new line.
func All() []Program {
	return []Program{
		{Name: "kubectl-vc", Module: ".", Image: true, Desktop: true, Description: "The kubectl plugin for VirtualClusters"},
		{Name: "vc-manager", Module: ".", Image: true, Description: "Reconciles VirtualClusters into control planes of tenants"},
		{Name: "vc-syncer", Module: ".", Image: true, Description: "Syncs objects between tenants and the super cluster"},
		{Name: "vn-agent", Module: ".", Image: true, Description: "Serves the kubelet API to apiservers of tenants"},
		{Name: "vc-gateway", Module: ".", Image: true, Description: "Serves all tenants at one address"},
		{Name: "vc-host", Module: kubernetesModule, Image: true, Description: "Runs the control planes of many tenants in one process"},
		{Name: "vc-dns", Module: "dns", Image: true, Description: "DNS of many tenants in one process"},
		{Name: "etcd", Module: kubernetesModule, Package: "go.etcd.io/etcd/server/v3", Tag: "3.6.16-0", Image: true,
			Description: "The store of hosted control planes"},
		{Name: "vc-capi", Module: "capi", Image: true, Description: "Makes VirtualClusters of Cluster API's Clusters"},
		{Name: "vc-standalone", Module: kubernetesModule, Image: true, Desktop: true, Description: "VirtualCluster on one machine"},
	}
}

// Images returns the programs that have a container image.
func Images() []Program {
	return slices.DeleteFunc(All(), func(p Program) bool { return !p.Image })
}

// Platform is what a program is compiled for.
type Platform struct{ OS, Architecture string }

// String returns the platform as in the names of files, such as linux_amd64.
func (p Platform) String() string { return p.OS + "_" + p.Architecture }

// Compare orders platforms by name.
func (p Platform) Compare(other Platform) int { return strings.Compare(p.String(), other.String()) }

// Linux returns the platforms of container images.
func Linux() []Platform { return []Platform{{linux, "amd64"}, {linux, "arm64"}} }

// Released returns the platforms of all archives.
func Released() []Platform {
	return append(Linux(), Platform{"darwin", "amd64"}, Platform{"darwin", "arm64"})
}

// On returns those of the programs that are published for a platform.
func On(platform Platform, all []Program) []Program {
	return slices.DeleteFunc(slices.Clone(all), func(p Program) bool { return platform.OS != linux && !p.Desktop })
}

// Build is how programs are compiled.
type Build struct {
	// Root is the folder of the project.
	Root string
	// Flags are those of the linker, and KubernetesFlags the additional ones of
	// the programs that contain Kubernetes.
	Flags, KubernetesFlags string
	// Out is the folder for the programs, with a folder for each platform.
	Out string
}

// File returns the name of a compiled program.
func (b Build) File(platform Platform, p Program) string {
	return filepath.Join(b.Out, platform.String(), p.Name)
}

// Files returns the names of a program that was compiled for Linux.
func (b Build) Files(p Program) map[Platform]string {
	files := map[Platform]string{}
	for _, platform := range Linux() {
		files[platform] = b.File(platform, p)
	}
	return files
}

// Run compiles programs for platforms.
func (b Build) Run(ctx context.Context, platforms []Platform, all []Program) error {
	for _, platform := range platforms {
		for _, p := range On(platform, all) {
			if err := b.compile(ctx, platform, p); err != nil {
				return fmt.Errorf("compile %s in %s for %s: %w", p.Name, p.Module, platform, err)
			}
		}
	}
	return nil
}

// compile compiles a program. Neither the folder of the project nor settings of
// this machine change the result.
func (b Build) compile(ctx context.Context, platform Platform, p Program) error {
	out, err := filepath.Abs(b.File(platform, p))
	if err != nil {
		return err
	}
	flags := b.Flags
	switch {
	case p.Package != "":
		flags = stripped
	case p.Module == kubernetesModule:
		flags += " " + b.KubernetesFlags
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", //nolint:gosec // the arguments are the developer's
		"-ldflags", flags, "-o", out, cmp.Or(p.Package, "./cmd/"+p.Name))
	command.Dir = filepath.Join(b.Root, p.Module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0")
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	return command.Run()
}

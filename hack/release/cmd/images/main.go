// Command images writes an OCI archive with the container images of each
// program.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/publish"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

func main() {
	name := flag.String("version", "", "the tag of the images")
	built := flag.String("built", "", "directory of programs for this machine's architecture; without it, programs are compiled for all")
	out := flag.String("out", "", "directory to write the archives to")
	build := programs.Build{}
	flag.StringVar(&build.Root, "root", "../..", "directory of the project")
	flag.StringVar(&build.Flags, "ldflags", "", "flags of the linker")
	flag.StringVar(&build.KubernetesFlags, "kubernetes-ldflags", "", "more of them for programs that contain Kubernetes")
	flag.StringVar(&build.Out, "programs", "", "directory to compile programs into")
	flag.Parse()
	if err := run(context.Background(), build, *name, *built, *out); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, build programs.Build, name, built, out string) error {
	release, err := version.Describe(ctx, build.Root, name)
	if err != nil {
		return err
	}
	if built != "" {
		here := programs.Platform{OS: "linux", Architecture: runtime.GOARCH}
		return publish.Images(release, out, func(p programs.Program) map[programs.Platform]string {
			return map[programs.Platform]string{here: filepath.Join(built, p.Name)}
		})
	}
	if err := build.Run(ctx, programs.Linux(), programs.Images()); err != nil {
		return err
	}
	return publish.Images(release, out, build.Files)
}

// Command release writes all files of a release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/virtualcluster/virtualcluster/hack/release/publish"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

func main() {
	name := flag.String("version", "", "the release, such as v0.1.0")
	check := flag.Bool("check", false, "report only whether the version and the tree can be released")
	p := publish.Publication{}
	flag.StringVar(&p.Build.Root, "root", "../..", "directory of the project")
	flag.StringVar(&p.Build.Flags, "ldflags", "", "flags of the linker")
	flag.StringVar(&p.Build.KubernetesFlags, "kubernetes-ldflags", "", "more of them for programs that contain Kubernetes")
	flag.StringVar(&p.Build.Out, "programs", "", "directory to compile programs into")
	flag.StringVar(&p.Out, "out", "", "empty directory for the files")
	flag.StringVar(&p.Registry, "registry", "", "registry of the images in the install manifest")
	flag.Parse()
	if err := run(context.Background(), p, *name, *check); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p publish.Publication, name string, check bool) error {
	if err := errors.Join(version.Validate(name), version.Clean(ctx, p.Build.Root)); err != nil || check {
		return err
	}
	var err error
	if p.Release, err = version.Describe(ctx, p.Build.Root, name); err != nil {
		return err
	}
	return p.Run(ctx)
}

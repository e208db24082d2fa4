// Command push uploads image archives to a registry, and prints the reference
// of each with its digest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/virtualcluster/virtualcluster/hack/release/containers"
	"github.com/virtualcluster/virtualcluster/hack/release/publish"
)

func main() {
	registry := flag.String("registry", "", "where the repositories of the images are, such as registry.example.com/team")
	images := flag.String("images", "", "directory of the archives")
	flag.Parse()
	if err := run(context.Background(), *registry, *images); err != nil {
		fmt.Fprintln(os.Stderr, "push:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, registry, images string) error {
	if registry == "" {
		return errors.New("push images: no registry; make push REGISTRY=registry.example.com/team")
	}
	files, err := publish.ImageArchives(images)
	if err != nil {
		return err
	}
	for _, file := range files {
		reference, err := containers.Push(ctx, registry, file)
		if err != nil {
			return err
		}
		fmt.Println(reference)
	}
	return nil
}

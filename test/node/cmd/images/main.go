// Command images writes the container images of a real node as archives: the
// images that manifests name, which no registry serves.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	programs := flag.String("programs", "", "directory of the programs that were built for images")
	kubernetes := flag.String("conformance", "", "directory of Kubernetes' module: write the images of its conformance suite, as one archive")
	onlyTraefik := flag.Bool("traefik", false, "write the image of Traefik instead of those that a node has by itself")
	out := flag.String("out", "", "directory to write the archives to")
	flag.Parse()
	if err := writeAll(context.Background(), *programs, *kubernetes, *onlyTraefik, *out); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func writeAll(ctx context.Context, programs, kubernetes string, onlyTraefik bool, out string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("make the directory of archives: %w", err)
	}
	if kubernetes != "" {
		images, err := conformance(ctx, programs, kubernetes)
		if err != nil {
			return err
		}
		return writeArchive(filepath.Join(out, "conformance.tar"), images...)
	}
	images := []image{traefik(programs)}
	if !onlyTraefik {
		var err error
		if images, err = catalog(ctx, programs); err != nil {
			return err
		}
	}
	for _, image := range images {
		if err := writeArchive(filepath.Join(out, image.file()), image); err != nil {
			return err
		}
	}
	return nil
}

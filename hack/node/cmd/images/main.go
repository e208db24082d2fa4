// Command images writes the container images of a real node as archives: what manifests name and no registry is asked for.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	programs := flag.String("programs", "", "directory of the programs that were built for images")
	out := flag.String("out", "", "directory to write the archives to")
	flag.Parse()
	if err := writeAll(context.Background(), *programs, *out); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func writeAll(ctx context.Context, programs, out string) error {
	images, err := catalog(ctx, programs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("make the directory of archives: %w", err)
	}
	for _, image := range images {
		if err := image.write(out); err != nil {
			return fmt.Errorf("image %s: %w", image.reference, err)
		}
	}
	return nil
}

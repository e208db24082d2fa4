// Package publish writes the files of a release into a folder.
package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/virtualcluster/virtualcluster/hack/release/containers"
	"github.com/virtualcluster/virtualcluster/hack/release/programs"
	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

// imageSuffix is that of image archives.
const imageSuffix = ".oci.tar"

// Images writes the image archive of each program that has one. The function
// files returns the files of a program by platform.
func Images(release version.Release, out string, files func(programs.Program) map[programs.Platform]string) error {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	for _, p := range programs.Images() {
		image := imageRelease(release, p)
		index, err := containers.New(image, p, files(p))
		if err != nil {
			return fmt.Errorf("make the image of %s: %w", p.Name, err)
		}
		file := filepath.Join(out, p.Name+"_"+image.Version+imageSuffix)
		if err := containers.Write(file, image, p, index); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	return nil
}

// imageRelease returns the release that an image is of. A program with a tag of
// its own has neither the commit nor the time of the project's release, so that
// its image stays the same.
func imageRelease(release version.Release, p programs.Program) version.Release {
	if p.Tag == "" {
		return release
	}
	return version.Release{Version: p.Tag, Time: time.Unix(0, 0).UTC()}
}

// ImageArchives returns the image archives in a folder.
func ImageArchives(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*"+imageSuffix))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("find image archives in %s: there are none; make images writes them", dir)
	}
	return files, err
}

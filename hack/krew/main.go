// Krew writes the manifest of the kubectl plugin for krew. Its arguments are the
// version, the URL of the folder with the archives, and the archives, which are
// named kubectl-vc_VERSION_OS_ARCH.tar.gz.
package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed vc.yaml.tmpl
var manifest string

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// release is what the template reads.
type release struct {
	Version, BaseURL string
	// SHA256 has the checksums of the archives by platform, such as linux_amd64.
	SHA256 map[string]string
}

// run writes the manifest of a release.
func run(w io.Writer, args []string) error {
	const fixed = 2
	if len(args) <= fixed {
		return fmt.Errorf("expected the version, the URL and the archives, got %q", args)
	}
	r := release{Version: args[0], BaseURL: strings.TrimSuffix(args[1], "/"), SHA256: map[string]string{}}
	for _, archive := range args[fixed:] {
		if err := r.add(archive); err != nil {
			return err
		}
	}
	split := func(platform string) []string { return strings.SplitN(platform, "_", 2) }
	t, err := template.New("vc.yaml").Funcs(template.FuncMap{"split": split}).Parse(manifest)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// add adds the checksum of an archive.
func (r release) add(archive string) error {
	platform, named := strings.CutPrefix(filepath.Base(archive), "kubectl-vc_"+r.Version+"_")
	platform, compressed := strings.CutSuffix(platform, ".tar.gz")
	if !named || !compressed || strings.Count(platform, "_") != 1 {
		return fmt.Errorf("%s is not named kubectl-vc_%s_OS_ARCH.tar.gz", archive, r.Version)
	}
	data, err := os.ReadFile(archive) //nolint:gosec // an argument of a developer
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	r.SHA256[platform] = hex.EncodeToString(sum[:])
	return nil
}

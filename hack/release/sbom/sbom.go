// Package sbom describes what a program was compiled from, as CycloneDX.
package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/virtualcluster/virtualcluster/hack/release/version"
)

// development is the version of a module that is a folder of the project.
const development = "(devel)"

// Write writes the SBOM of a compiled program as JSON.
func Write(w io.Writer, release version.Release, file string) error {
	program, err := os.ReadFile(file) //nolint:gosec // a program that was compiled for the release
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", file, err)
	}
	document := describe(release, filepath.Base(file), info, sha256.Sum256(program))
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(document)
}

// describe returns the SBOM of a program with a checksum. Modules of the
// project have the version of the release.
func describe(release version.Release, name string, info *debug.BuildInfo, sum [sha256.Size]byte) *cdx.BOM {
	number := info.Main.Version
	if isDevelopment(number) {
		number = release.Version
	}
	main := component(cdx.ComponentTypeApplication, info.Main.Path, number)
	main.Name = name
	if within, ok := strings.CutPrefix(info.Path, info.Main.Path+"/"); ok {
		main.PackageURL += "#" + within
	}
	main.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	main.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	modules := append([]*debug.Module{{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}}, info.Deps...)
	components, refs := make([]cdx.Component, len(modules)), make([]string, len(modules))
	for i, module := range modules {
		components[i] = library(release, module)
		refs[i] = components[i].BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: release.Time.Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom
}

// library returns a module that a program contains.
func library(release version.Release, module *debug.Module) cdx.Component {
	switch {
	case module.Replace == nil:
		return component(cdx.ComponentTypeLibrary, module.Path, module.Version)
	case isDevelopment(module.Replace.Version):
		return component(cdx.ComponentTypeLibrary, module.Path, release.Version)
	default:
		return component(cdx.ComponentTypeLibrary, module.Replace.Path, module.Replace.Version)
	}
}

// isDevelopment reports whether the version is that of a module that is a folder
// of the project.
func isDevelopment(version string) bool { return version == "" || version == development }

// component returns a module of Go.
func component(kind cdx.ComponentType, module, version string) cdx.Component {
	url := "pkg:golang/" + module + "@" + version
	return cdx.Component{BOMRef: url, Type: kind, Name: module, Version: version, PackageURL: url}
}

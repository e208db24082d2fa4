// Package sbom describes what a program was compiled from, as CycloneDX.
package sbom

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
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
	document := describe(release, info, sha256.Sum256(program))
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(document)
}

// describe returns the SBOM of a program with a checksum. Modules of the
// project have the version of the release.
func describe(release version.Release, info *debug.BuildInfo, sum [sha256.Size]byte) *cdx.BOM {
	main := component(cdx.ComponentTypeApplication, info.Main.Path, release.Version)
	main.Name = path.Base(info.Path)
	main.PackageURL += "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/")
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
	case module.Replace.Version == "" || module.Replace.Version == development:
		return component(cdx.ComponentTypeLibrary, module.Path, release.Version)
	default:
		return component(cdx.ComponentTypeLibrary, module.Replace.Path, module.Replace.Version)
	}
}

// component returns a module of Go.
func component(kind cdx.ComponentType, module, version string) cdx.Component {
	url := "pkg:golang/" + module + "@" + version
	return cdx.Component{BOMRef: url, Type: kind, Name: module, Version: version, PackageURL: url}
}

package main

import (
	"path"
	"slices"
	"strings"
)

// area is a part of the product whose tests run only if it may have changed. What
// belongs to no area is tested each time.
type area struct {
	name string
	// specs are the files of test/integration and test/escapes, without _test.go, in
	// which a star is any text.
	specs []string
	// steps are targets of the Makefile.
	steps []string
	// paths are the folders and files of which a change concerns the area. They
	// contain those of other areas that the area's packages import.
	paths []string
}

// areas are all of them. A change that is in none of their paths concerns all.
func areas() []area { return slices.Concat(parts(), around()) }

func gatewayPaths() []string {
	return []string{
		"cmd/vc-gateway", "config/rbac/vc-gateway", "controllers/projectclaim", "docs/gateway.md", "docs/projects.md", "gateway",
		"internal/converted",
	}
}

func networksPaths() []string {
	return []string{"config/networks", "plugins/network", "syncer/networks"}
}

// parts are those of what runs for tenants.
func parts() []area {
	return []area{
		{
			name: "gateway", specs: []string{"gateway*", "project*"},
			paths: gatewayPaths(),
		},
		{
			name: "converted tenants", specs: []string{"converted*"},
			paths: slices.Concat(gatewayPaths(), networksPaths(), []string{
				"config/converted", "controllers/provisioner/converted", "syncer/converted",
			}),
		},
		{
			name: "networks", specs: []string{"exposure", "families", "ingresses", "network*", "routes"},
			paths: slices.Concat(networksPaths(), []string{"docs/network-providers.md", "docs/networks.md", "test/operators"}),
		},
		{
			name: "hosts", specs: []string{"host_*", "hosted*", "hosts*", "move*", "podports", "sleep", "starts", "store"},
			paths: []string{
				"controllers/provisioner/hosted", "controllers/store", "docs/hosting.md", "standalone/cmd/vc-host", "standalone/host",
				"standalone/hosted/transfer",
			},
		},
		{
			name: "shared CRDs", specs: []string{"operators", "sharedcrds*"},
			paths: []string{"docs/shared-crds.md", "syncer/sharedcrds", "test/operators"},
		},
		{
			name: "shared DNS", specs: []string{"shareddns"},
			paths: []string{"config/dns", "controllers/shareddns", "dns"},
		},
		{
			name: "agent", specs: []string{"agent*", "kubelet"},
			paths: []string{"cmd/vn-agent", "config/rbac/vn-agent", "vnagent"},
		},
	}
}

// around are what surrounds it: how it is installed, documented, extended and
// released.
func around() []area {
	// The chart is made of the files in config.
	installed := []string{
		"charts", "cli", "cmd/kubectl-vc", "config/converted", "config/dns", "config/networks", "config/rbac/vc-gateway", "config/rbac/vn-agent",
		"config/samples",
	}
	return []area{
		{
			name: "installation", specs: []string{"chart", "kubectl_vc*"}, steps: []string{"test-chart"},
			paths: slices.Concat(installed, []string{"hack/chart", "hack/cli", "hack/krew", "test/chart"}),
		},
		{
			name: "documents", specs: []string{"documents"},
			paths: slices.Concat(installed, []string{"docs", "README.md", "SECURITY.md", "test/documents"}),
		},
		{
			name: "Cluster API", steps: []string{"test-capi"},
			paths: []string{"capi", "docs/cluster-api.md"},
		},
		{
			name: "plugins", steps: []string{"test-plugins"},
			paths: slices.Concat(networksPaths(), []string{
				"controllers/projectclaim", "controllers/provisioner", "controllers/shareddns", "controllers/store", "docs/plugin-authors.md",
				"docs/provisioner-authors.md", "gateway/convert/kinds", "internal/converted", "syncer/converted", "syncer/sharedcrds", "test/plugins",
			}),
		},
		{
			name: "release", steps: []string{"test-release"},
			paths: []string{"charts", "hack/release"},
		},
		{
			name: "what the gate only builds",
			paths: []string{
				"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "PROJECT", "cmd/vc-bench", "hack/words", "standalone/bench", "test/bench",
				"test/conformance",
			},
		},
	}
}

// concerns tells whether a change of a file concerns the area.
func (a area) concerns(file string) bool {
	return a.hasSpec(file) || slices.ContainsFunc(a.paths, func(p string) bool { return file == p || strings.HasPrefix(file, p+"/") })
}

// hasSpec tells whether a file has specs of the area.
func (a area) hasSpec(file string) bool {
	spec, found := specOf(file)
	return found && slices.ContainsFunc(a.specs, func(pattern string) bool {
		matches, err := path.Match(pattern, spec)
		return matches && err == nil
	})
}

// specFolders are those of the suites of which a run may leave specs out.
func specFolders() []string { return []string{"test/integration", "test/escapes"} }

// specOf returns the name of a file of specs, without _test.go.
func specOf(file string) (string, bool) {
	folder, name := path.Split(file)
	name, found := strings.CutSuffix(name, "_test.go")
	return name, found && slices.Contains(specFolders(), path.Clean(folder))
}

package documents

// Cluster is the environment of blocks without another: a super cluster with
// vc-manager, vc-syncer, vc-gateway, and the tenants of the block. The
// integration tests run them.
const Cluster = ""

// Installation is a cluster with nodes and with images that it can pull, into
// which the block installs the chart or which has it.
const Installation = "installation"

// Environments returns the environments in which no test runs a block, with the
// reason. Its commands are parsed, and its manifests are not sent.
func Environments() map[string]string {
	return map[string]string{
		Installation:  "it needs the chart in a cluster with nodes, which make e2e has",
		"make":        "it calls make, for minutes or hours; CI runs these targets",
		"machine":     "it installs files or packages on the machine, as root",
		"registry":    "it needs a registry, or images in a node",
		"program":     "it starts a program that stays, or needs one that has the port",
		"loss":        "it is for an object of an installation that has lost its data",
		"cluster-api": "it needs Cluster API; the tests of capi have these objects in config/samples",
	}
}

package documents

// Cluster is the environment of blocks without another: a super cluster with
// vc-manager, vc-syncer, vc-gateway, and the tenants of the block. The
// integration tests run them.
const Cluster = ""

// The environments of blocks that the specs of an installation run.
const (
	// Nodes is a cluster with nodes, volumes, and images that it can pull, and with
	// nothing of VirtualCluster.
	Nodes = "nodes"
	// Installation is the same with all parts installed.
	Installation = "installation"
)

// Environments returns the environments in which no test runs a block, with the
// reason. Its commands are parsed, and its manifests are not sent.
func Environments() map[string]string {
	return map[string]string{
		"make":        "it calls make, for minutes or hours; CI runs these targets",
		"machine":     "it installs files or packages on the machine, as root",
		"registry":    "it needs a registry, or images in a node",
		"program":     "it starts a program that stays, or needs one that has the port",
		"loss":        "it is for an object of an installation that has lost its data",
		"steps":       "its commands are the steps of a task, between which an admin waits",
		"stores":      "it needs a second etcd; the integration tests of moves have two",
		"cluster-api": "it needs Cluster API; the tests of capi have these objects in config/samples",
		"networks":    "it needs vc-syncer --networks; the integration tests apply config/samples/networks",
		"gateway-api": "it needs the CustomResourceDefinitions of the Gateway API",
	}
}

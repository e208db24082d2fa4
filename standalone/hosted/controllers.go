package hosted

// Controller is one of the controllers that can run beside an apiserver.
type Controller struct {
	// Name is the name that kube-controller-manager knows it by.
	Name string
}

// TenantControllers are the controllers of a tenant's control plane: those
// that work on API objects alone. What deals with nodes is left to the super
// cluster.
func TenantControllers() []Controller { return nil }

// SuperControllers are the controllers of the super cluster: the tenant's,
// those for nodes and pods on them, and the scheduler.
func SuperControllers() []Controller { return nil }

package v1alpha1

// Types of the conditions of a NestedControlPlane, beside Paused of Cluster API.
const (
	// ConditionAvailable mirrors ControlPlaneReady of the VirtualCluster.
	ConditionAvailable = "Available"
	// ConditionVirtualClusterUpToDate reports whether the VirtualCluster exists,
	// belongs to this NestedControlPlane and has the spec that it should.
	ConditionVirtualClusterUpToDate = "VirtualClusterUpToDate"
	// ConditionKubeconfigAvailable reports whether the kubeconfig Secret of the
	// Cluster exists with the credentials of the tenant's admin.
	ConditionKubeconfigAvailable = "KubeconfigAvailable"
	// ConditionDeleting reports what a deletion waits for.
	ConditionDeleting = "Deleting"
)

// Reasons of these conditions.
const (
	// ReasonUpToDate: the VirtualCluster has the spec that it should.
	ReasonUpToDate = "UpToDate"
	// ReasonAvailable: it exists and is up to date.
	ReasonAvailable = "Available"
	// ReasonNotAvailable: the VirtualCluster has not reported it yet.
	ReasonNotAvailable = "NotAvailable"
	// ReasonWaitingForCluster: the Cluster does not refer to this object yet.
	ReasonWaitingForCluster = "WaitingForCluster"
	// ReasonWaitingForInfrastructure: the NestedCluster does not exist yet.
	ReasonWaitingForInfrastructure = "WaitingForInfrastructure"
	// ReasonInvalidSpec: the specs of the Cluster, the NestedCluster and the
	// NestedControlPlane do not make a VirtualCluster.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonVirtualClusterConflict: a VirtualCluster of the Cluster's name exists
	// and does not belong to the Cluster.
	ReasonVirtualClusterConflict = "VirtualClusterConflict"
	// ReasonVirtualClusterLost: the VirtualCluster of this NestedControlPlane does
	// not exist in this management cluster.
	ReasonVirtualClusterLost = "VirtualClusterLost"
	// ReasonSecretConflict: a Secret of the name exists and does not belong to
	// the Cluster.
	ReasonSecretConflict = "SecretConflict"
	// ReasonDeleting: a deletion is under way.
	ReasonDeleting = "Deleting"
	// ReasonNotDeleting: no deletion is under way.
	ReasonNotDeleting = "NotDeleting"
	// ReasonFailed: a request failed; it is retried.
	ReasonFailed = "Failed"
)

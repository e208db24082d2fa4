package app

// What the syncer may do in the super cluster. It may write to all namespaces, since tenants come and go; the guard keeps
// every write to namespaces of the tenant that it is for.

// The tenants and their kubeconfigs.
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.x-k8s.io,resources=virtualclusters/status,verbs=patch

// What flows down.
// +kubebuilder:rbac:groups="",resources=namespaces;serviceaccounts;services;pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get;list;watch;create;patch;delete

// What flows up.
// +kubebuilder:rbac:groups="",resources=nodes;events,verbs=get;list;watch

// Leader election.
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=vc-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=vc-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch,namespace=vc-system

// Metrics for those who may see them.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

package hosted

// Spec describes one control plane. Only Name has no default.
type Spec struct {
	// Name is the control plane's identity on this host: a DNS label that
	// also names its etcd prefix, its PKI directory and its server name.
	Name string
	// ServiceCIDR is the range of ClusterIPs; 10.96.0.0/16 by default.
	ServiceCIDR string
	// ClusterDomain is the DNS domain of the cluster; cluster.local by default.
	ClusterDomain string
	// Controllers run beside the apiserver; TenantControllers() when nil.
	Controllers []Controller
	// NodeAuthorization adds the Node authorizer and the NodeRestriction
	// admission plugin, for a cluster with kubelets of its own.
	NodeAuthorization bool
	// KubeletCA verifies the serving certificates of kubelets (or of what
	// answers in their place) for logs and exec, in PEM. Unverified if empty.
	KubeletCA []byte
	// ExtraSANs are further DNS names and IP addresses of the serving
	// certificate.
	ExtraSANs []string
}

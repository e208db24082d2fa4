package kinds

const certificatesGroup = "certificates.k8s.io"

// signing returns the kind CertificateSigningRequest: no signer of the super cluster
// sees those of a tenant.
func signing() []Kind {
	return []Kind{{
		Group: certificatesGroup, Resource: "certificatesigningrequests", Kind: "CertificateSigningRequest", Class: Shelved,
		Stored:       Stored{Group: Shelf.Group, Version: Shelf.Version, InRoot: true, Whole: true},
		Subresources: map[string]Subresource{statusName: object, "approval": object},
	}}
}

// IsSigningRequest reports whether it is the kind CertificateSigningRequest.
func (k Kind) IsSigningRequest() bool {
	return k.Group == certificatesGroup && k.Resource == "certificatesigningrequests"
}

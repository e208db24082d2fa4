package kinds

const registrationGroup = "apiregistration.k8s.io"

// noRemote is why a tenant has no other APIServices.
const noRemote = "each says that a version of an API group is served: the tenant lists them, and adds API groups by CRDs"

// apiServices returns the kind APIService: there is one for each version of an API
// group that the tenant has.
func apiServices() []Kind {
	return []Kind{{
		Group: registrationGroup, Resource: "apiservices", Kind: "APIService", Class: Shown,
		Verbs: []string{"get", "list"}, ReadOnly: noRemote, Subresources: map[string]Subresource{statusName: {Reason: noRemote}},
	}}
}

// IsAPIService reports whether it is the kind APIService.
func (k Kind) IsAPIService() bool { return k.Group == registrationGroup }

package kinds

// AdmissionGroup is the API group of webhooks and policies of admission.
const AdmissionGroup = "admissionregistration.k8s.io"

// admission returns the kinds of webhooks and policies, which the gateway
// evaluates on the tenant's objects.
func admission() []Kind {
	return []Kind{
		shelvedAdmission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", nil),
		shelvedAdmission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", nil),
		shelvedAdmission("validatingadmissionpolicies", "ValidatingAdmissionPolicy", withStatus),
		shelvedAdmission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", nil),
		shelvedAdmission("mutatingadmissionpolicies", "MutatingAdmissionPolicy", nil),
		shelvedAdmission("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", nil),
	}
}

func shelvedAdmission(resource, kind string, subresources map[string]Subresource) Kind {
	return Kind{
		Group: AdmissionGroup, Resource: resource, Kind: kind, Class: Shelved, Stored: rootShelf, Subresources: subresources,
	}
}

// IsAdmission reports whether it is a kind of webhooks or policies.
func (k Kind) IsAdmission() bool { return k.Group == AdmissionGroup }

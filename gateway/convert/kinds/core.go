package kinds

// Reasons for which subresources are refused.
const (
	noKubelet = "it leads to the kubelet of a node, which has the pods of all tenants"
	noBinding = "the super cluster's scheduler chooses nodes"
)

// The names of subresources that several kinds have.
const (
	statusName = "status"
	proxyName  = "proxy"
)

// object is the subresource that returns the object itself.
var object = Subresource{Form: SameDocument}

// other is the subresource that has a kind of its own.
var other = Subresource{Form: OtherDocument}

// withStatus are the subresources of most kinds, and withScale of workloads.
var (
	withStatus = map[string]Subresource{statusName: object}
	withScale  = map[string]Subresource{statusName: object, "scale": other}
)

// core returns the kinds of the core group.
func core() []Kind {
	return []Kind{
		namespaces(),
		nodes(),
		pods(),
		{Resource: "podtemplates", Kind: "PodTemplate", Class: Placed, Rules: below("template", podTemplate())},
		{
			Resource: "replicationcontrollers", Kind: "ReplicationController", Class: Placed,
			Rules: below("spec.template", podTemplate()), Subresources: withScale,
		},
		{
			Resource: "services", Kind: "Service", Class: Placed,
			Subresources: map[string]Subresource{statusName: object, proxyName: {Form: Proxy}},
		},
		{Resource: "configmaps", Kind: "ConfigMap", Class: Placed},
		secrets(),
		{
			Resource: "serviceaccounts", Kind: "ServiceAccount", Class: Placed,
			Rules: means(NamespaceName, "secrets[*].namespace"),
			Subresources: map[string]Subresource{
				"token": {Form: OtherDocument, Rules: means(Audience, "spec.audiences[*]")},
			},
		},
		{
			Resource: "endpoints", Kind: "Endpoints", Class: Placed,
			Rules: means(NamespaceName, "subsets[*].addresses[*].targetRef.namespace", "subsets[*].notReadyAddresses[*].targetRef.namespace"),
		},
		{
			Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Class: Placed,
			Rules: claim(), Subresources: withStatus,
		},
		{Resource: "limitranges", Kind: "LimitRange", Class: Placed},
		{Resource: "resourcequotas", Kind: "ResourceQuota", Class: Placed, Subresources: withStatus},
		{
			Resource: "events", Kind: "Event", Class: Placed,
			Rules: join(means(NamespaceName, "involvedObject.namespace", "related.namespace"), means(Text, "message")),
			Cells: map[string]Means{"Message": Text},
		},
	}
}

// namespaces: the platform's labels of a namespace, such as those of Pod
// Security, are not the tenant's.
func namespaces() Kind {
	return Kind{
		Resource: "namespaces", Kind: "Namespace", Class: Prefixed,
		Rules: join(means(OwnNamespace, "metadata.name"), means(NamespaceLabels, "metadata.labels"),
			means(ManagedNamespaceFields, "metadata.managedFields"),
			Rules{"metadata.ownerReferences": {Means: Hidden, Reason: "the owner of a Namespace is the platform's"}}),
		Cells:        map[string]Means{"Name": OwnNamespace},
		Subresources: map[string]Subresource{statusName: object, "finalize": object},
	}
}

// toRead is why objects of the super cluster that are shown cannot be changed, and
// readVerbs are those of such objects.
const toRead = "they are the super cluster's: a tenant reads them"

var readVerbs = []string{"get", "list", "watch"}

func nodes() Kind {
	return Kind{
		Resource: "nodes", Kind: "Node", Class: Shown, Verbs: readVerbs, ReadOnly: toRead,
		Subresources: map[string]Subresource{statusName: {Reason: toRead}, proxyName: {Reason: noKubelet}},
	}
}

func pods() Kind {
	return Kind{
		Resource: "pods", Kind: "Pod", Class: Placed,
		Rules: join(below(specField, join(podSpec(), claims())), below("status", podStatus())),
		Subresources: map[string]Subresource{
			statusName: object, "ephemeralcontainers": object, "resize": object,
			"eviction": other, "log": {Form: Stream}, "exec": {Form: Stream}, "attach": {Form: Stream}, "portforward": {Form: Stream},
			"binding": {Reason: noBinding}, proxyName: {Form: Proxy},
		},
	}
}

// secrets: the super cluster would fill one of this type with a token of its
// own.
func secrets() Kind {
	return Kind{
		Resource: "secrets", Kind: "Secret", Class: Placed,
		Rules: Rules{"type": {Means: SecretType, Reason: noTokens}},
	}
}

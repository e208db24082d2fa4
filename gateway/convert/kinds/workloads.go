package kinds

// workloads returns the kinds of the groups apps, batch, autoscaling and policy.
func workloads() []Kind {
	const apps = "apps"
	template := below("spec.template", podTemplateWithClaims())
	return []Kind{
		{Group: apps, Resource: "deployments", Kind: "Deployment", Class: Placed, Rules: template, Subresources: withScale},
		{Group: apps, Resource: "replicasets", Kind: "ReplicaSet", Class: Placed, Rules: template, Subresources: withScale},
		{
			Group: apps, Resource: "statefulsets", Kind: "StatefulSet", Class: Placed, Subresources: withScale,
			Rules: join(template, below("spec.volumeClaimTemplates[*]", claim())),
		},
		{
			Group: apps, Resource: "daemonsets", Kind: "DaemonSet", Class: Placed, Rules: template, Subresources: withStatus,
			Uncreated: "DaemonSets run on the nodes of the super cluster, which are the platform's",
		},
		{
			Group: apps, Resource: "controllerrevisions", Kind: "ControllerRevision", Class: Placed,
			Rules: below("data.spec.template", podTemplateWithClaims()),
		},
		{Group: "batch", Resource: "jobs", Kind: "Job", Class: Placed, Rules: template, Subresources: withStatus},
		{
			Group: "batch", Resource: "cronjobs", Kind: "CronJob", Class: Placed, Subresources: withStatus,
			Rules: below("spec.jobTemplate", join(metadata, template)),
		},
		{
			Group: "autoscaling", Resource: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Class: Placed,
			Rules: means(APIVersion, "spec.scaleTargetRef.apiVersion"), Subresources: withStatus,
		},
		{
			Group: "policy", Resource: "poddisruptionbudgets", Kind: "PodDisruptionBudget", Class: Placed,
			Subresources: withStatus,
		},
		{Group: devicesGroup, Resource: "resourceclaims", Kind: "ResourceClaim", Class: Placed, Rules: deviceClaim(), Subresources: withStatus},
		{
			Group: devicesGroup, Resource: "resourceclaimtemplates", Kind: "ResourceClaimTemplate", Class: Placed,
			Rules: below(specField, join(metadata, deviceClaim())),
		},
		{Group: "coordination.k8s.io", Resource: "leases", Kind: "Lease", Class: Placed},
		{
			Group: "events.k8s.io", Resource: "events", Kind: "Event", Class: Placed,
			Rules: join(means(NamespaceName, "regarding.namespace", "related.namespace"), means(Text, "note")),
			Cells: map[string]Means{"Message": Text},
		},
	}
}

// podTemplateWithClaims has the rules of a template of pods, and of the claims
// of their ephemeral volumes.
func podTemplateWithClaims() Rules { return join(podTemplate(), below(specField, claims())) }

// deviceClaim has the rules of a claim of devices.
func deviceClaim() Rules {
	return unserved("it is access to devices that others use", "spec.devices.requests[*].exactly.adminAccess")
}

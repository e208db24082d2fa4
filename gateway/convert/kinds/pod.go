package kinds

import "maps"

// Reasons for which fields of pods are refused.
const (
	noTokens = "a token without an end would be one of the super cluster: create one with a TokenRequest, or project it into a volume"
	noTrust  = "it would be of the super cluster, not of the tenant"
)

// podSpec has the rules of the spec of a pod.
func podSpec() Rules {
	rules := join(
		means(Audience, "volumes[*].projected.sources[*].serviceAccountToken.audience"),
		means(FieldPath, "volumes[*].downwardAPI.items[*].fieldRef.fieldPath",
			"volumes[*].projected.sources[*].downwardAPI.items[*].fieldRef.fieldPath"),
		unserved(noTrust, "volumes[*].projected.sources[*].clusterTrustBundle", "volumes[*].projected.sources[*].podCertificate"),
	)
	for _, containers := range []string{"initContainers", "containers", "ephemeralContainers"} {
		maps.Copy(rules, means(FieldPath, containers+"[*].env[*].valueFrom.fieldRef.fieldPath"))
	}
	for _, affinity := range []string{"affinity.podAffinity.", "affinity.podAntiAffinity."} {
		for _, term := range []string{
			affinity + "requiredDuringSchedulingIgnoredDuringExecution[*].",
			affinity + "preferredDuringSchedulingIgnoredDuringExecution[*].podAffinityTerm.",
		} {
			maps.Copy(rules, means(NamespaceName, term+"namespaces[*]"))
			maps.Copy(rules, means(NamespaceSelector, term+"namespaceSelector"))
		}
	}
	return rules
}

// podStatus has the rules of the status of a pod: kubelets name ConfigMaps and
// Secrets with their namespaces.
func podStatus() Rules {
	rules := means(Text, "message")
	for _, statuses := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		maps.Copy(rules, means(Text, statuses+"[*].state.waiting.message", statuses+"[*].state.terminated.message",
			statuses+"[*].lastState.terminated.message"))
	}
	return rules
}

// podTemplate has the rules of a template of pods.
func podTemplate() Rules { return join(metadata, below(specField, podSpec())) }

// claim has the rules of a PersistentVolumeClaim.
func claim() Rules {
	return join(metadata, means(VolumeName, "spec.volumeName"),
		unserved("a claim gets its data from objects of its own namespace", "spec.dataSourceRef.namespace"))
}

// claims have the rules of the claims in the ephemeral volumes of a pod's spec.
func claims() Rules {
	return below("volumes[*].ephemeral.volumeClaimTemplate", claim())
}

package removal

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// named returns an object of a kind.
func named(kind, namespace, name string, labels, annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

func TestIsOurs(t *testing.T) {
	part := map[string]string{"app.kubernetes.io/part-of": "virtualcluster"}
	with := func(more map[string]string) map[string]string {
		labels := map[string]string{"app.kubernetes.io/part-of": "virtualcluster"}
		maps.Copy(labels, more)
		return labels
	}
	release := func(namespace string) map[string]string {
		return map[string]string{"meta.helm.sh/release-name": "virtualcluster", "meta.helm.sh/release-namespace": namespace}
	}
	helm := with(map[string]string{"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "virtualcluster-0.1.0"})
	for name, tt := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"of the release":                 {named("ClusterRole", "", "vc-manager", helm, release("vc-system")), true},
		"of the release, in a namespace": {named("Role", "vc-syncer-replicas", "vc-syncer", helm, release("vc-system")), true},
		"of another release":             {named("ClusterRole", "", "vc-manager", helm, release("other")), false},
		"by kustomize":                   {named("Deployment", "vc-system", "vc-manager", part, nil), true},
		"of helm template":               {named("Deployment", "vc-system", "vc-manager", helm, nil), true},
		"of the gateway":                 {named("MutatingWebhookConfiguration", "", "converted-admission.tenancy.x-k8s.io", part, nil), true},
		"in another namespace":           {named("Deployment", "team", "vc-manager", part, nil), false},
		"of another tool":                {named("ClusterRole", "", "vc-x", with(map[string]string{"app.kubernetes.io/managed-by": "terraform"}), nil), false},
		"without labels":                 {named("ClusterRole", "", "vc-manager", nil, nil), false},
		"of another project":             {named("ClusterRole", "", "vc-manager", map[string]string{"app.kubernetes.io/part-of": "other"}, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOurs(tt.object, "vc-system"); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	const ns = "vc-system"
	owned := named("Pod", ns, "vc-manager-abc", nil, nil)
	owned.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ReplicaSet", Name: "vc-manager"}})
	replica := map[string]string{"tenancy.x-k8s.io/replica-of": "vc-host"}
	helm := func(release, kind string) *unstructured.Unstructured {
		secret := named("Secret", ns, "sh.helm.release.v1."+release+".v1", map[string]string{"owner": "helm", "name": release}, nil)
		secret.Object["type"] = kind
		return secret
	}
	for name, tt := range map[string]struct {
		object *unstructured.Unstructured
		want   residue
	}{
		"installed":             {named("Service", ns, "x", map[string]string{"app.kubernetes.io/part-of": "virtualcluster"}, nil), derived},
		"a pod of a workload":   {owned, derived},
		"a pod":                 {named("Pod", ns, "vc-debug", nil, nil), foreign},
		"an event":              {named("Event", ns, "x", nil, nil), derived},
		"the root CA":           {named("ConfigMap", ns, "kube-root-ca.crt", nil, nil), derived},
		"a ConfigMap":           {named("ConfigMap", ns, "vc-manager", nil, nil), foreign},
		"the default account":   {named("ServiceAccount", ns, "default", nil, nil), derived},
		"an account":            {named("ServiceAccount", ns, "vc-managers", nil, nil), foreign},
		"of the webhook":        {named("Secret", ns, "vc-manager-webhook", nil, nil), made},
		"of the limits":         {named("Secret", ns, "vc-syncer-webhook", nil, nil), made},
		"of the gateway":        {named("Secret", ns, "vc-gateway-tls", nil, nil), made},
		"the limits' Lease":     {named("Lease", ns, "vc-syncer-webhook", nil, nil), made},
		"a Secret":              {named("Secret", ns, "vc-manager-webhook-backup", nil, nil), foreign},
		"the release":           {helm("virtualcluster", "helm.sh/release.v1"), made},
		"another release":       {helm("other", "helm.sh/release.v1"), foreign},
		"a forged release":      {helm("virtualcluster", "Opaque"), foreign},
		"a volume of the store": {named("PersistentVolumeClaim", ns, "data-1-vc-store-0", map[string]string{"app.kubernetes.io/name": "vc-store"}, nil), made},
		"a volume":              {named("PersistentVolumeClaim", ns, "data-1-vc-store-0", nil, nil), foreign},
		"the leader's Lease":    {named("Lease", ns, "vc-manager", nil, nil), made},
		"a Lease":               {named("Lease", ns, "vc-manager-2", nil, nil), foreign},
		"a replica's Lease":     {named("Lease", "vc-host-replicas", "vc-host-x", replica, nil), made},
		"a Lease beside it":     {named("Lease", "vc-host-replicas", "vc-host-x", nil, nil), foreign},
	} {
		t.Run(name, func(t *testing.T) {
			if got := classify(tt.object, ns, "virtualcluster"); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestDefinitionNames: the definitions for converted tenants are deleted, too.
func TestDefinitionNames(t *testing.T) {
	all, err := definitionNames()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"virtualclusters.tenancy.x-k8s.io", "roles.shelved.tenancy.x-k8s.io", "validatingwebhookconfigurations.shelved.tenancy.x-k8s.io",
	} {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not among %v", name, all)
		}
	}
}

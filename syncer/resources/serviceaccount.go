package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ServiceAccount is synced down as a name that pods can run under, with its
// image pull secrets. It has no permissions in the super cluster and its token
// is never mounted: a tenant's pod uses the tenant's apiserver, with its
// tokens. The account that the super cluster creates in every namespace is
// adopted. Any other existing account is the platform's, and may have
// permissions.
func ServiceAccount() kinds.Flow {
	return kinds.Down[*corev1.ServiceAccount]{
		Name:       "ServiceAccount",
		Object:     &corev1.ServiceAccount{},
		List:       &corev1.ServiceAccountList{},
		Summary:    "down, as a name without permissions",
		Adopt:      func(super *corev1.ServiceAccount) bool { return super.Name == defaultAccount },
		Desired:    desiredServiceAccount,
		Merge:      mergeServiceAccount,
		References: serviceAccountReferences,
	}
}

// defaultAccount is the service account that Kubernetes creates in each
// namespace, and the default for pods.
const defaultAccount = "default"

func desiredServiceAccount(_ kinds.View, tenant *corev1.ServiceAccount) (*corev1.ServiceAccount, error) {
	super := &corev1.ServiceAccount{
		AutomountServiceAccountToken: new(false),
		ImagePullSecrets:             slices.Clone(tenant.ImagePullSecrets),
	}
	if came := secretNames(tenant.ImagePullSecrets); came != "" {
		super.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{names.Values: came}}
	}
	return super, nil
}

// secretNames returns the value of the annotation that lists the tenant's
// secrets.
func secretNames(secrets []corev1.LocalObjectReference) string {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = s.Name
	}
	return strings.Join(all, ",")
}

// mergeServiceAccount merges the tenant's secrets, and keeps those that the
// super cluster added to the account.
func mergeServiceAccount(super, desired *corev1.ServiceAccount) {
	super.AutomountServiceAccountToken = desired.AutomountServiceAccountToken
	came := strings.Split(super.Annotations[names.Values], ",")
	super.ImagePullSecrets = slices.DeleteFunc(super.ImagePullSecrets, func(s corev1.LocalObjectReference) bool {
		return slices.Contains(came, s.Name) && !slices.Contains(desired.ImagePullSecrets, s)
	})
	for _, s := range desired.ImagePullSecrets {
		if !slices.Contains(super.ImagePullSecrets, s) {
			super.ImagePullSecrets = append(super.ImagePullSecrets, s)
		}
	}
	delete(super.Annotations, names.Values)
}

// serviceAccountReferences returns the image pull secrets. They are not
// required: without them, images are pulled anonymously.
func serviceAccountReferences(account *corev1.ServiceAccount) []kinds.Reference {
	var refs references
	for _, s := range account.ImagePullSecrets {
		refs.add("Secret", s.Name)
	}
	return refs
}

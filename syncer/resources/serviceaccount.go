package resources

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// ServiceAccount flows down as a name that pods can run under, with the secrets for registries. It has no rights in the super
// cluster and its token is never mounted: a tenant's pod talks to the tenant's apiserver, with tokens of that. The one that the
// super cluster makes in every namespace is adopted. Any other existing account is the platform's, and may have rights.
func ServiceAccount() kinds.Flow {
	return kinds.Down[*corev1.ServiceAccount]{
		Name:       "ServiceAccount",
		Object:     &corev1.ServiceAccount{},
		List:       &corev1.ServiceAccountList{},
		Adopt:      func(super *corev1.ServiceAccount) bool { return super.Name == defaultAccount },
		Desired:    desiredServiceAccount,
		Merge:      mergeServiceAccount,
		References: serviceAccountReferences,
	}
}

// defaultAccount is the service account that Kubernetes makes in each namespace, and that pods without one run under.
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

// secretNames is what a copy notes of the secrets that came from the tenant.
func secretNames(secrets []corev1.LocalObjectReference) string {
	all := make([]string, len(secrets))
	for i, s := range secrets {
		all[i] = s.Name
	}
	return strings.Join(all, ",")
}

// mergeServiceAccount takes the tenant's secrets, and leaves alone those that the super cluster added to the account.
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

// serviceAccountReferences are the secrets for registries, without which images are pulled by anybody's right.
func serviceAccountReferences(account *corev1.ServiceAccount) []kinds.Reference {
	var refs references
	for _, s := range account.ImagePullSecrets {
		refs.add("Secret", s.Name)
	}
	return refs
}

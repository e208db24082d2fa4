package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// admitProfiles rejects pods with profiles that an admin has installed on the
// nodes, perhaps for the platform's own pods. The Pod Security level baseline
// allows such profiles.
func admitProfiles(policy tenancyv1alpha1.TenantPolicy, pod *corev1.Pod) error {
	if mayUseNodeProfiles(policy) {
		return nil
	}
	if own := pod.Spec.SecurityContext; own != nil {
		path := specPath.Child("securityContext")
		if why := admitProfile(path, own.SeccompProfile, own.AppArmorProfile, own.WindowsOptions); why != nil {
			return why
		}
	}
	for path, c := range containersAt(&pod.Spec) {
		if why := admitContainerProfiles(path, c); why != nil {
			return why
		}
	}
	return nil
}

// mayUseNodeProfiles reports whether pods may use profiles of their node.
// Privileged pods do not need a profile at all.
func mayUseNodeProfiles(policy tenancyv1alpha1.TenantPolicy) bool {
	return policy.AllowNodeProfiles || policy.PodSecurity == tenancyv1alpha1.PodSecurityPrivileged
}

func admitContainerProfiles(path *field.Path, c *corev1.Container) error {
	own := c.SecurityContext
	if own == nil {
		return nil
	}
	return admitProfile(path.Child("securityContext"), own.SeccompProfile, own.AppArmorProfile, own.WindowsOptions)
}

func admitProfile(
	path *field.Path, seccomp *corev1.SeccompProfile, appArmor *corev1.AppArmorProfile, windows *corev1.WindowsSecurityContextOptions,
) error {
	const why = "pods may not use profiles of their node; use RuntimeDefault"
	switch {
	case seccomp != nil && seccomp.Type == corev1.SeccompProfileTypeLocalhost:
		return field.Forbidden(path.Child("seccompProfile", "type"), why)
	case appArmor != nil && appArmor.Type == corev1.AppArmorProfileTypeLocalhost:
		return field.Forbidden(path.Child("appArmorProfile", "type"), why)
	case windows != nil && windows.GMSACredentialSpecName != nil:
		return field.Forbidden(path.Child("windowsOptions", "gmsaCredentialSpecName"), "pods may not use an account of their node's domain")
	case windows != nil && windows.GMSACredentialSpec != nil:
		return field.Forbidden(path.Child("windowsOptions", "gmsaCredentialSpec"), "pods may not use an account of their node's domain")
	}
	return nil
}

package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// tenants checks whether the VirtualClusters are Ready.
func tenants(ctx context.Context, s *Super) Result {
	list := &tenancyv1alpha1.VirtualClusterList{}
	if err := s.Client.List(ctx, list); err != nil {
		return unread(fmt.Errorf("list VirtualClusters: %w", err))
	}
	return tenantsVerdict(list.Items)
}

// tenantsVerdict judges by the VirtualClusters that are not Ready. A control
// plane that sleeps is well.
func tenantsVerdict(all []tenancyv1alpha1.VirtualCluster) Result {
	var unready []string
	for i := range all {
		vc := &all[i]
		c := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionReady)
		switch {
		case c != nil && c.Status == metav1.ConditionTrue, meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake):
		case c == nil:
			unready = append(unready, fmt.Sprintf("%s/%s (no conditions)", vc.Namespace, vc.Name))
		default:
			unready = append(unready, fmt.Sprintf("%s/%s (%s: %s)", vc.Namespace, vc.Name, c.Reason, terminal.Line(c.Message)))
		}
	}
	const next = "See the conditions of one: kubectl vc describe NAME -n NAMESPACE"
	switch {
	case len(unready) == 0:
		return ok("all %d VirtualClusters are Ready, or sleep", len(all))
	case len(unready) == len(all):
		return failed(next, "no VirtualCluster is Ready: %s", enumerate(unready))
	}
	return warning(next, "%d of %d VirtualClusters are not Ready: %s", len(unready), len(all), enumerate(unready))
}

// certificates checks the credentials of the tenants' admins.
func certificates(ctx context.Context, s *Super) Result {
	secrets := &corev1.SecretList{}
	if err := s.Client.List(ctx, secrets, client.MatchingFields{"metadata.name": names.AdminKubeconfigSecret}); err != nil {
		return unread(fmt.Errorf("list the Secrets %s of the tenants: %w", names.AdminKubeconfigSecret, err))
	}
	return certificatesVerdict(secrets.Items, time.Now())
}

// certificatesVerdict judges by the kubeconfigs of the tenants' admins. Those
// with other credentials than certificates are not considered.
func certificatesVerdict(secrets []corev1.Secret, now time.Time) Result {
	var wrong []string
	verdict := OK
	for i := range secrets {
		config, err := kubeconfig.RESTConfig(kubeconfig.ForAdmin(secrets[i].Data))
		if err != nil || len(config.CertData) == 0 {
			continue // of a tenant's External control plane; its conditions report what is wrong
		}
		r, found := expiry("that of "+secrets[i].Namespace, config.CertData, now)
		if !found {
			continue
		}
		wrong = append(wrong, r.Message)
		if r.Verdict == Failed || verdict == OK {
			verdict = r.Verdict
		}
	}
	if len(wrong) == 0 {
		return ok("no certificate of a tenant's admin expires soon")
	}
	return Result{verdict, strings.TrimSpace("certificates of tenants' admins: " + enumerate(wrong)),
		"See whether vc-host renews them: its log, and the conditions of the VirtualClusters"}
}

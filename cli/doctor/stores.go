package doctor

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

// stores checks the ControlPlaneStores: the credentials, and what vc-host
// reports.
func stores(ctx context.Context, s *Super) Result {
	_, err := workload{name: installation.Host}.read(ctx, s)
	if apierrors.IsNotFound(err) {
		return skipped("%s is not a part of this installation", installation.Host)
	}
	if err != nil {
		return unread(err)
	}
	list := &tenancyv1alpha1.ControlPlaneStoreList{}
	if err := s.Client.List(ctx, list); err != nil {
		return unread(fmt.Errorf("list ControlPlaneStores: %w", err))
	}
	results := make([]Result, 0, len(list.Items))
	for i := range list.Items {
		store := &list.Items[i]
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: s.Installation, Name: store.Spec.CredentialsSecret}
		if err := s.Client.Get(ctx, key, secret); client.IgnoreNotFound(err) != nil {
			return unread(fmt.Errorf("get Secret %s: %w", key, err))
		}
		results = append(results, storeVerdict(store, secret.Data, time.Now()))
	}
	return storesVerdict(results)
}

// storesVerdict returns the worst result of the stores.
func storesVerdict(results []Result) Result {
	if len(results) == 0 {
		return failed("Create a ControlPlaneStore that names an etcd, or install one with vcStore.enabled=true",
			"there is no ControlPlaneStore, so that hosted control planes have nowhere to keep their data")
	}
	worst := ok("%d of %d are healthy", len(results), len(results))
	for _, r := range results {
		if r.Verdict == Failed || r.Verdict == Warning && worst.Verdict == OK {
			worst = r
		}
		if worst.Verdict == Failed {
			break
		}
	}
	return worst
}

// storeVerdict judges a store by its credentials and its condition.
func storeVerdict(s *tenancyv1alpha1.ControlPlaneStore, secret map[string][]byte, now time.Time) Result {
	credentials := fmt.Sprintf("Renew the Secret %s in the namespace of vc-host: ca.crt, tls.crt and tls.key", s.Spec.CredentialsSecret)
	certificate := secret[corev1.TLSCertKey]
	if len(certificate) == 0 {
		return failed(credentials, "ControlPlaneStore %s: the Secret %s has no certificate", s.Name, s.Spec.CredentialsSecret)
	}
	if err := pairProblem(certificate, secret[corev1.TLSPrivateKeyKey]); err != nil {
		return failed(credentials, "ControlPlaneStore %s: Secret %s: %v", s.Name, s.Spec.CredentialsSecret, err)
	}
	expires, expiring := expiry("the certificate in Secret "+s.Spec.CredentialsSecret, certificate, now)
	expires.Next, expires.Message = credentials, fmt.Sprintf("ControlPlaneStore %s: %s", s.Name, expires.Message)
	if expiring && expires.Verdict == Failed {
		return expires
	}
	healthy := meta.FindStatusCondition(s.Status.Conditions, tenancyv1alpha1.ConditionStoreHealthy)
	switch {
	case healthy == nil:
		return failed("See the log of vc-host, which reports it", "ControlPlaneStore %s: nothing is known of its health", s.Name)
	case healthy.Status != metav1.ConditionTrue:
		return failed("See its endpoints and its condition: kubectl describe controlplanestore "+s.Name,
			"ControlPlaneStore %s: %s: %s", s.Name, healthy.Reason, terminal.Line(healthy.Message))
	case expiring:
		return expires
	}
	return ok("ControlPlaneStore %s is healthy", s.Name)
}

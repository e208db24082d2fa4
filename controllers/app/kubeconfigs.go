package app

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// kubeconfigs reads when the certificates in the kubeconfigs of tenants expire.
// Those of External control planes are renewed by others.
type kubeconfigs struct {
	reader client.Reader

	mu sync.Mutex
	// read are the expiries that were read, so that a scrape parses what has
	// changed.
	read map[types.UID]readExpiry
}

// readExpiry is the expiry that a Secret had in a version; the zero time if it
// has no certificate.
type readExpiry struct {
	version string
	end     time.Time
}

// expiries are those of all kubeconfigs in the cache.
func (k *kubeconfigs) expiries(yield func(string, time.Time) bool) {
	for _, end := range k.list() {
		if !end.IsZero() && !yield(kindKubeconfig, end) {
			return
		}
	}
}

func (k *kubeconfigs) list() []time.Time {
	all := &corev1.SecretList{}
	if k.reader != nil {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		if err := k.reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
			return nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	read := make(map[types.UID]readExpiry, len(all.Items))
	ends := make([]time.Time, 0, len(all.Items))
	for i := range all.Items {
		secret := &all.Items[i]
		found, ok := k.read[secret.UID]
		if !ok || found.version != secret.ResourceVersion {
			found = readExpiry{version: secret.ResourceVersion, end: endOf(kubeconfig.ForAdmin(secret.Data))}
		}
		read[secret.UID] = found
		ends = append(ends, found.end)
	}
	k.read = read
	return ends
}

// endOf returns when the certificate of a kubeconfig expires.
func endOf(data []byte) time.Time {
	config, err := kubeconfig.RESTConfig(data)
	if err != nil {
		return time.Time{}
	}
	end, err := pki.NotAfter(config.CertData)
	if err != nil {
		return time.Time{}
	}
	return end
}

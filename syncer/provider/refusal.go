package provider

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// A tenant whose apiserver's answer was rejected is disengaged for
// refusalFirst, and the delay doubles each time, up to refusalMost.
const refusalFirst, refusalMost = 10 * time.Second, 10 * time.Minute

// refusal records that an answer of a tenant's apiserver was rejected.
type refusal struct {
	problem
	// uid and kubeconfig are those of the VirtualCluster at that time.
	uid        types.UID
	kubeconfig [sha256.Size]byte
	// until is when the tenant is engaged again, after delay.
	until time.Time
	delay time.Duration
}

// refuse records that an answer of the tenant's apiserver was rejected. The
// tenant is disengaged, which frees its memory.
func (c *Cluster) refuse(cause error) {
	if c.refused.CompareAndSwap(nil, &cause) {
		c.changed()
	}
}

// refusal returns why a tenant is temporarily disengaged; nil if it is not. It
// disengages an engaged tenant.
func (p *Provider) refusal(vc *tenancyv1alpha1.VirtualCluster, key types.NamespacedName, current *tenant, config []byte) error {
	sum := sha256.Sum256(config)
	p.mu.Lock()
	known := p.refusals[key]
	p.mu.Unlock()
	if known != nil && (known.uid != vc.UID || known.kubeconfig != sum) {
		known = nil
	}
	if current == nil {
		if known != nil && time.Now().Before(known.until) {
			return known
		}
		return nil
	}
	cause := current.cluster.refused.Load()
	if cause == nil {
		return nil
	}
	p.disengage(key)
	now := newRefusal(vc.UID, sum, current.cluster.config.Host, *cause, known)
	p.mu.Lock()
	p.refusals[key] = now
	p.mu.Unlock()
	return now
}

// newRefusal returns a refusal, with a longer delay if the previous one was
// recent.
func newRefusal(uid types.UID, kubeconfig [sha256.Size]byte, server string, cause error, before *refusal) *refusal {
	delay := refusalFirst
	if before != nil && time.Since(before.until) < refusalMost {
		delay = min(2*before.delay, refusalMost)
	}
	return &refusal{
		problem: problem{
			tenancyv1alpha1.ReasonAnswerRefused,
			fmt.Sprintf("Nothing is synced, and running pods keep running: the syncer rejects answers of the tenant's apiserver at %s: %v. "+
				"It retries with backoff; the tenant has to fix its apiserver or delete objects", server, cause),
			cause,
		},
		uid: uid, kubeconfig: kubeconfig, until: time.Now().Add(delay), delay: delay,
	}
}

// reportRefusal writes the condition of a disengaged tenant, and returns when
// to reconcile it again.
func (p *Provider) reportRefusal(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, why *refusal) (time.Duration, error) {
	return max(time.Until(why.until), time.Millisecond), p.report(ctx, vc, why.problem)
}

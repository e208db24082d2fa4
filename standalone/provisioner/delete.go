package provisioner

import (
	"context"
	"fmt"
	"sync"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// deletion is one that is running, or whose outcome was not read yet.
type deletion struct {
	done chan struct{}
	err  error // set before done is closed
	// told has its end told, once no caller waits for it any more.
	told sync.Once
}

// Delete stops the control plane and deletes its data, in the background if
// that takes long.
func (h *Hosted) Delete(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	key := vc.Status.ClusterNamespace
	going := h.beginDelete(key)
	patience := time.NewTimer(deletePatience)
	defer patience.Stop()
	select {
	case <-going.done:
		return h.endDelete(key, going)
	case <-patience.C:
		of := reference(vc)
		going.told.Do(func() {
			h.work.Go(func() {
				<-going.done
				h.tell(of)
			})
		})
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// beginDelete returns the deletion in progress, or starts one.
func (h *Hosted) beginDelete(key string) *deletion {
	h.mu.Lock()
	defer h.mu.Unlock()
	if going := h.deletions[key]; going != nil {
		return going
	}
	going := &deletion{done: make(chan struct{})}
	h.deletions[key] = going
	h.work.Go(func() {
		going.err = h.host.Delete(h.ctx, key)
		close(going.done)
	})
	return going
}

// endDelete returns the result. The next call retries a deletion that failed.
func (h *Hosted) endDelete(key string, ended *deletion) (gone bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.deletions[key] == ended {
		delete(h.deletions, key)
	}
	if ended.err != nil {
		return false, fmt.Errorf("delete control plane %s: %w", key, ended.err)
	}
	delete(h.planes, key)
	delete(h.wakes, key)
	h.backoff.DeleteEntry(key)
	return true, nil
}

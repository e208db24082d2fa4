package integration

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// errKilled is what a killed process gets for its requests.
var errKilled = errors.New("killed")

// killer ends a process at one of its writes: before or after it took effect.
type killer struct {
	kill   context.CancelFunc
	before bool

	mu sync.Mutex
	// left is how many writes there are until the process is killed.
	left int
}

// write executes a write of the process.
func (k *killer) write(do func() error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left--
	switch {
	case k.left > 0:
		return do()
	case k.left < 0:
		return errKilled
	}
	defer k.kill()
	if !k.before {
		_ = do() // the process does not learn the result
	}
	return errKilled
}

// wrap returns a client whose writes can kill the process.
func (k *killer) wrap(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return k.write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return k.write(func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return k.write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return k.write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return k.write(func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return k.write(func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return k.write(func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// processCluster is the control plane of a tenant for one process.
type processCluster struct {
	client client.Client
	cache  cache.Cache
}

func (c processCluster) GetClient() client.Client       { return c.client }
func (c processCluster) GetCache() cache.Cache          { return c.cache }
func (processCluster) Learn(*meta.RESTMapping)          {}
func (processCluster) Verify(ctx context.Context) error { return ctx.Err() }

// cacheOf returns a cache of a control plane, which runs until the end of the
// specs.
func cacheOf(ctx context.Context, config *rest.Config) cache.Cache {
	GinkgoHelper()
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(end)
	of, err := cache.New(config, cache.Options{Scheme: super.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	go func() { _ = of.Start(living) }()
	return of
}

// mortal is a process that can be killed at a write.
type mortal interface {
	// run runs it until it is killed, before the write took effect or after it, or
	// until it is done.
	run(ctx context.Context, write int, before bool, done func() bool)
}

// reach runs processes until they have done something. Each is killed: at the first
// write before it took effect, at the first one after it, and so on, to a number
// of writes and then from the first one again.
func reach(ctx context.Context, p mortal, what string, writes, most int, done func() bool) {
	GinkgoHelper()
	processes := 0
	for ; !done(); processes++ {
		Expect(processes).To(BeNumerically("<", most), what)
		p.run(ctx, 1+processes/2%writes, processes%2 == 0, done)
	}
	GinkgoWriter.Printf("%s after %d processes\n", what, processes)
}

// runUntil runs a process until it ends. It kills one that is done.
func runUntil(ctx context.Context, run func(context.Context), kill func(), interval time.Duration, done func() bool) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	for {
		select {
		case <-ended:
			return
		case <-time.After(interval):
			if done() {
				kill()
			}
		}
	}
}

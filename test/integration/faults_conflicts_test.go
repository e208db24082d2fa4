package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (f *faults) conflicts() {
	It("both sides agree in the end although other clients write to both all the time", Label("long"), func(ctx SpecContext) {
		const ns = "conflicts"
		loads := f.busy(ctx, ns)
		s := &storm{}
		s.begin(ctx)
		DeferCleanup(s.end)
		for _, l := range loads {
			above, below := client.InNamespace(ns), client.InNamespace(l.tenant.Super(ns))
			s.write(l.tenant.Client, &corev1.PodList{}, above, labelled("storm"), inStatus(`"phase": "Pending", "message": "n%[1]d"`))
			s.write(super.Client, &corev1.PodList{}, below, labelled("app.kubernetes.io/name"), inStatus(``))
			s.write(super.Client, &corev1.ServiceList{}, below, meddle{patch: `{"spec": {"selector": {"other": "n%d"}}}`})
			s.write(super.Client, &corev1.ConfigMapList{}, below, meddle{patch: `{"data": {"round": "forged", "other": "n%d"}}`})
		}
		Consistently(s.failure).WithTimeout(outage / 2).Should(Succeed())
		Eventually(s.writes.Load).WithTimeout(recovery).Should(BeNumerically(">", 200), "there is a storm")
		s.end()
		Expect(s.failure()).To(Succeed())
		f.shouldBeWhole(ctx, loads)
	})
}

// gust is the pause between two writes of one writer.
const gust = 50 * time.Millisecond

// storm is a set of clients that write to the same objects as the syncer.
type storm struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	writes atomic.Int64
	failed atomic.Pointer[error]
}

// meddle is a patch; %d stands for a number that changes each time.
type meddle struct {
	patch  string
	status bool
}

// labelled writes a label, and a label and an annotation that only this client
// writes.
func labelled(key string) meddle {
	return meddle{patch: `{"metadata": {"labels": {"` + key + `": "n%d", "storm.example.com/label": "n%[1]d"},
		"annotations": {"storm.example.com/annotation": "n%[1]d"}}}`}
}

// inStatus writes fields of a status, and a condition that only this client
// writes.
func inStatus(fields string) meddle {
	if fields != "" {
		fields += ", "
	}
	return meddle{status: true, patch: `{"status": {` + fields +
		`"conditions": [{"type": "example.com/Storm", "status": "True", "reason": "N%[1]d"}]}}`}
}

func (s *storm) begin(ctx context.Context) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
}

// end stops the writers and waits for them.
func (s *storm) end() {
	s.cancel()
	s.work.Wait()
}

// failure returns the first write that should have succeeded and failed.
func (s *storm) failure() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// write starts a writer, which writes to one object of a list after the other,
// with changing patches.
func (s *storm) write(c client.Client, list client.ObjectList, in client.InNamespace, what ...meddle) {
	s.work.Go(func() {
		ticker := time.NewTicker(gust)
		defer ticker.Stop()
		for n := 0; s.ctx.Err() == nil; <-ticker.C {
			err := c.List(s.ctx, list, in)
			if err == nil {
				err = meta.EachListItem(list, func(obj runtime.Object) error {
					<-ticker.C
					n++
					s.writes.Add(1)
					return what[n%len(what)].to(s.ctx, c, obj.(client.Object), n)
				})
			}
			if err != nil && s.ctx.Err() == nil {
				s.failed.Store(&err)
			}
		}
	})
}

// to patches an object, if it still exists.
func (m meddle) to(ctx context.Context, c client.Client, obj client.Object, n int) error {
	patch := client.RawPatch(types.StrategicMergePatchType, fmt.Appendf(nil, m.patch, n))
	write := func() error { return c.Patch(ctx, obj, patch) }
	if m.status {
		write = func() error { return c.Status().Patch(ctx, obj, patch) }
	}
	err := write()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

package bench

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// churn measures what the syncer leaks when tenants are created, run a pod and
// are deleted.
func (w *world) churn(ctx context.Context) error {
	if _, err := w.tenants(ctx, 1); err != nil {
		return err
	}
	s := &report.Scenario{Name: "churn", Size: fmt.Sprintf("%d tenants created and deleted at a time, %d times, and 1 that stays", w.opts.ChurnTenants, w.opts.ChurnRounds)}
	s.Notef("the first round is not counted: it leaves what the syncer allocates once in its life")
	var before sample
	var namespaces int
	for round := range w.opts.ChurnRounds + 1 {
		w.progress.sayf("round %d of %d", round, w.opts.ChurnRounds)
		if err := w.comeAndGo(ctx); err != nil {
			return err
		}
		now, err := w.settle(ctx)
		if err != nil {
			return err
		}
		left, err := w.superNamespaces(ctx)
		if err != nil {
			return err
		}
		if round == 0 {
			before, namespaces = now, left
			continue
		}
		s.Add("goroutines more than before", "", now.Goroutines-before.Goroutines, 1).Want("0")
		s.Add("open watches more than before", "", now.Watches-before.Watches, 1).Want("0")
		s.Add("open files more than before", "", now.Files-before.Files, 1).Want("0")
		s.Add("memory more than before", "MiB", float64(now.Resident-before.Resident)/measure.MiB, 1).Want("0")
		s.Add("namespaces in the super cluster more than before", "", float64(left-namespaces), 1).Want("0")
	}
	return w.publish(s)
}

// comeAndGo creates tenants that run a pod each, and deletes them.
func (w *world) comeAndGo(ctx context.Context) error {
	made, err := w.newTenants(ctx, "churn", 0, w.opts.ChurnTenants)
	if err != nil {
		return err
	}
	return w.removeTenants(ctx, made)
}

// superNamespaces counts the namespaces of all tenants in the super cluster.
func (w *world) superNamespaces(ctx context.Context) (int, error) {
	list := &corev1.NamespaceList{}
	if err := w.super.Client.List(ctx, list, client.HasLabels{names.VCName}); err != nil {
		return 0, fmt.Errorf("count tenants' namespaces: %w", err)
	}
	return len(list.Items), nil
}

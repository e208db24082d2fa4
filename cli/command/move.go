package command

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// moveOptions are the options of move.
type moveOptions struct {
	changeOptions

	store string
}

func newMove(p *platform) *cobra.Command {
	o := &moveOptions{changeOptions: changeOptions{platform: p, print: printFlags("moved")}}
	c := &cobra.Command{
		Use:   "move NAME... --store STORE",
		Short: "Move the data of tenants to another ControlPlaneStore",
		Long: "Move the data of hosted tenants to another ControlPlaneStore (spec.controlPlane.store). The control plane of a tenant is " +
			"stopped for some seconds, in which requests wait; its clients list again. A tenant that sleeps is moved and sleeps on.\n\n" +
			"If the store does not take the data, the condition Moved reports the reason, and the tenant is served from where its data is.",
		Example:           "  kubectl vc move red -n team --store fast-disks --wait",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	o.wait.AddFlags(c.Flags(), "the data is in the store, and the control plane uses it")
	c.Flags().StringVar(&o.store, "store", "", "Name of the ControlPlaneStore that is to have the data")
	return c
}

// Validate checks the flags.
func (o *moveOptions) Validate() error {
	if o.store == "" {
		return exit.With(exit.Usagef("--store is required"), "List the stores: kubectl get controlplanestores")
	}
	return o.changeOptions.Validate()
}

// Run has the data moved.
func (o *moveOptions) Run(ctx context.Context) error {
	return o.change(ctx, "move", func(vc *tenancyv1alpha1.VirtualCluster) { setStore(vc, o.store) }, goal{"moved", isMoved})
}

// setStore changes where the data of a VirtualCluster is to be.
func setStore(vc *tenancyv1alpha1.VirtualCluster, store string) {
	if vc.Spec.ControlPlane == nil {
		vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{}
	}
	vc.Spec.ControlPlane.Store = store
}

// isMoved reports whether the data is where the spec says.
func isMoved(vc *tenancyv1alpha1.VirtualCluster) bool {
	moved := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionMoved)
	return moved != nil && moved.Status == metav1.ConditionTrue && moved.ObservedGeneration >= vc.Generation
}

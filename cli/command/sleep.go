package command

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// changeOptions are the options of verbs that change the spec of
// VirtualClusters.
type changeOptions struct {
	*platform

	print *genericclioptions.PrintFlags
	wait  waitFlags
	names []string
}

// Complete reads the names.
func (o *changeOptions) Complete(args []string) error {
	o.names = args
	return nil
}

// Validate checks the flags.
func (o *changeOptions) Validate() error {
	if err := validateFormat(o.print); err != nil {
		return err
	}
	return o.wait.validate()
}

// change changes the VirtualClusters and waits for the goal.
func (o *changeOptions) change(ctx context.Context, verb string, change func(*tenancyv1alpha1.VirtualCluster), g goal) error {
	printer, err := o.print.ToPrinter()
	if err != nil {
		return err
	}
	for _, name := range o.names {
		t, vc, err := o.read(ctx, name)
		if err != nil {
			return err
		}
		before := vc.DeepCopy()
		change(vc)
		if err := t.client.Patch(ctx, vc, client.MergeFrom(before)); err != nil {
			return explain(err, verb, t.key)
		}
		if o.wait.wait {
			if err := t.await(ctx, o.ErrOut, g, o.wait.timeout); err != nil {
				return err
			}
		}
		if err := printer.PrintObj(vc, o.Out); err != nil {
			return err
		}
	}
	return nil
}

// sleepOptions are the options of sleep.
type sleepOptions struct{ changeOptions }

func newSleep(p *platform) *cobra.Command {
	o := &sleepOptions{changeOptions{platform: p, print: printFlags("paused")}}
	c := &cobra.Command{
		Use:   "sleep NAME...",
		Short: "Stop the control planes of tenants until wake",
		Long: "Stop the control planes of hosted tenants until `kubectl vc wake` (spec.paused). Connections are closed and nothing is synced; " +
			"the data is kept, and the tenants' pods continue to run.\n\n" +
			"To let a control plane sleep only while it is not used, set spec.controlPlane.sleep instead.",
		Example:           "  kubectl vc sleep red blue -n team --wait",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	o.wait.AddFlags(c.Flags(), "the control plane is stopped")
	return c
}

// Run stops the control planes.
func (o *sleepOptions) Run(ctx context.Context) error {
	pause := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Paused = true }
	return o.change(ctx, "sleep", pause, goal{"paused", func(vc *tenancyv1alpha1.VirtualCluster) bool {
		awake := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake)
		return awake != nil && awake.Reason == tenancyv1alpha1.ReasonPaused
	}})
}

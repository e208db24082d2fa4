package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// wakeOptions are the options of wake.
type wakeOptions struct {
	changeOptions

	lasting time.Duration
}

func newWake(p *platform) *cobra.Command {
	o := &wakeOptions{changeOptions: changeOptions{platform: p, print: printFlags("woken")}}
	c := &cobra.Command{
		Use:   "wake NAME...",
		Short: "Wake the control planes of tenants",
		Long: "Wake the control planes of hosted tenants that sleep, or that were stopped by `kubectl vc sleep`. " +
			"A control plane that is not used sleeps again after the time in its spec, unless --for keeps it awake.",
		Example:           "  # wake it, and keep it awake for the next two hours\n  kubectl vc wake red -n team --for 2h",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	o.wait.AddFlags(c.Flags(), "the tenant is Ready")
	c.Flags().DurationVar(&o.lasting, "for", 0, "How long to keep the control plane awake")
	return c
}

// Validate checks the flags.
func (o *wakeOptions) Validate() error {
	if o.lasting < 0 {
		return exit.Usagef("--for: %s is less than 0", o.lasting)
	}
	return o.changeOptions.Validate()
}

// Run wakes the control planes.
func (o *wakeOptions) Run(ctx context.Context) error {
	until := time.Now().Add(o.lasting)
	return o.change(ctx, "wake", func(vc *tenancyv1alpha1.VirtualCluster) { wake(vc, until) }, goal{"awake", isAwake})
}

// wake changes a VirtualCluster so that it wakes, and is awake until a time.
func wake(vc *tenancyv1alpha1.VirtualCluster, until time.Time) {
	vc.Spec.Paused = false
	metav1.SetMetaDataAnnotation(&vc.ObjectMeta, names.WokenAt, until.UTC().Format(time.RFC3339))
}

// isAwake reports whether a tenant is awake and can work. Only a control plane
// that can sleep has the condition.
func isAwake(vc *tenancyv1alpha1.VirtualCluster) bool {
	return !meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake) && ready().reached(vc)
}

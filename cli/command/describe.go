package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// describeOptions are the options of describe.
type describeOptions struct {
	*platform

	print  *genericclioptions.PrintFlags
	events int
	names  []string
}

func newDescribe(p *platform) *cobra.Command {
	o := &describeOptions{platform: p, print: genericclioptions.NewPrintFlags("")}
	c := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Describe tenants: conditions, pending objects, usage and events",
		Long: "Describe tenants: their conditions, the objects that are not synced yet, what they have in the super cluster, " +
			"and the last events.\n\n" +
			"Only the super cluster is read: a control plane that sleeps is not woken.",
		Example:           "  kubectl vc describe red -n team",
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: p.completeNames(0),
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().IntVar(&o.events, "events", 10, "How many of the last events to print")
	return c
}

// Complete reads the names.
func (o *describeOptions) Complete(args []string) error {
	o.names = args
	return nil
}

// Validate checks the format.
func (o *describeOptions) Validate() error { return validateFormat(o.print) }

// Run describes the tenants.
func (o *describeOptions) Run(ctx context.Context) error {
	for i, name := range o.names {
		t, err := o.target(name)
		if err != nil {
			return err
		}
		d, err := describe(ctx, t, o.events)
		if err != nil {
			return err
		}
		if *o.print.OutputFormat != "" {
			err = printReport(o.print, o.platform, "Description", d)
		} else {
			if i > 0 {
				sayf(o.Out, "")
			}
			err = d.write(o.Out, time.Now())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// description is what describe prints of a tenant.
type description struct {
	VirtualCluster *tenancyv1alpha1.VirtualCluster `json:"virtualCluster"`
	Usage          usage                           `json:"usage"`
	// Events are the last ones about the VirtualCluster, the newest at the end.
	Events []event `json:"events"`
}

// usage is what a tenant has in the super cluster.
type usage struct {
	Namespaces int            `json:"namespaces"`
	Pods       map[string]int `json:"pods"`
	// Requests are the resources that pods request that have not terminated.
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

// event is an event about the VirtualCluster.
type event struct {
	Last    metav1.Time `json:"last"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Message string      `json:"message"`
	Count   int32       `json:"count"`
}

// describe reads the description of a tenant.
func describe(ctx context.Context, t target, events int) (*description, error) {
	vc, err := t.get(ctx)
	if err != nil {
		return nil, err
	}
	vc.ManagedFields = nil
	d := &description{VirtualCluster: vc}
	of := client.MatchingLabels{names.VCNamespace: vc.Namespace, names.VCName: vc.Name}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := t.client.List(ctx, namespaces, of); err != nil {
		return nil, fmt.Errorf("list the tenant's namespaces: %w", err)
	}
	pods := &corev1.PodList{}
	if err := t.client.List(ctx, pods, of); err != nil {
		return nil, fmt.Errorf("list the tenant's pods: %w", err)
	}
	d.Usage = usageOf(len(namespaces.Items), pods.Items)
	list := &corev1.EventList{}
	about := fields.OneTermEqualSelector("involvedObject.uid", string(vc.UID))
	if err := t.client.List(ctx, list, client.InNamespace(vc.Namespace), client.MatchingFieldsSelector{Selector: about}); err != nil {
		return nil, fmt.Errorf("list the events of VirtualCluster %s: %w", t.key, err)
	}
	d.Events = lastEvents(list.Items, events)
	return d, nil
}

// usageOf counts what a tenant has.
func usageOf(namespaces int, pods []corev1.Pod) usage {
	u := usage{Namespaces: namespaces, Pods: map[string]int{}, Requests: corev1.ResourceList{}}
	for i := range pods {
		p := &pods[i]
		u.Pods[cmp.Or(string(p.Status.Phase), string(corev1.PodPending))]++
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, c := range p.Spec.Containers {
			for name, quantity := range c.Resources.Requests {
				sum := u.Requests[name]
				sum.Add(quantity)
				u.Requests[name] = sum
			}
		}
	}
	return u
}

// lastEvents returns the last events, the newest at the end.
func lastEvents(all []corev1.Event, most int) []event {
	found := make([]event, 0, len(all))
	for i := range all {
		found = append(found, eventOf(&all[i]))
	}
	slices.SortStableFunc(found, func(a, b event) int { return a.Last.Compare(b.Last.Time) })
	return found[max(0, len(found)-max(most, 0)):]
}

// eventOf returns an event of either API: the newer one has its time and its
// count in other fields.
func eventOf(e *corev1.Event) event {
	last, count := e.LastTimestamp, max(e.Count, 1)
	if last.IsZero() {
		last = metav1.NewTime(e.EventTime.Time)
	}
	if e.Series != nil {
		last, count = metav1.NewTime(e.Series.LastObservedTime.Time), e.Series.Count
	}
	if last.IsZero() {
		last = e.CreationTimestamp
	}
	return event{Last: last, Type: e.Type, Reason: e.Reason, Message: e.Message, Count: count}
}

// printReport prints a report in the format of -o. A report is no object of an
// apiserver.
func printReport(f *genericclioptions.PrintFlags, p *platform, kind string, report any) error {
	printer, err := f.ToPrinter()
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(report)
	if err != nil {
		return fmt.Errorf("print %s: %w", kind, err)
	}
	content["apiVersion"], content["kind"] = reportVersion, kind
	return printer.PrintObj(&unstructured.Unstructured{Object: content}, p.Out)
}

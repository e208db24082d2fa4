package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

// defaultTimeout bounds how long a command waits for a tenant.
const defaultTimeout = 5 * time.Minute

// waitFlags are the flags of verbs that can wait for their effect.
type waitFlags struct {
	wait    bool
	timeout time.Duration
}

// AddFlags adds the flags. until completes the sentence "Wait until".
func (f *waitFlags) AddFlags(flags *pflag.FlagSet, until string) {
	flags.BoolVar(&f.wait, "wait", f.wait, "Wait until "+until+", and print each change of a condition")
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "How long to wait")
}

// validate rejects times that are not positive.
func (f *waitFlags) validate() error {
	if f.timeout <= 0 {
		return exit.Usagef("--timeout: %s is not more than 0", f.timeout)
	}
	return nil
}

// goal is a state of a VirtualCluster that a command waits for.
type goal struct {
	// name completes the sentence "VirtualCluster red is not".
	name string
	// reached reports whether a VirtualCluster is in the state; it is nil if
	// the VirtualCluster has to be gone.
	reached func(*tenancyv1alpha1.VirtualCluster) bool
}

// ready is the goal of a tenant that can work.
func ready() goal {
	return goal{"Ready", func(vc *tenancyv1alpha1.VirtualCluster) bool {
		return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionReady)
	}}
}

// await waits until the goal is reached and prints each change of a condition.
func (t target) await(ctx context.Context, w io.Writer, g goal, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var last *tenancyv1alpha1.VirtualCluster
	_, err := watchtools.UntilWithSync(bounded, t.listWatch(), &tenancyv1alpha1.VirtualCluster{},
		func(store toolscache.Store) (bool, error) {
			return len(store.List()) == 0 && g.reached == nil, nil
		},
		func(event watch.Event) (bool, error) {
			vc, ok := event.Object.(*tenancyv1alpha1.VirtualCluster)
			switch {
			case !ok:
				return false, nil
			case event.Type == watch.Deleted && g.reached == nil:
				return true, nil
			case event.Type == watch.Deleted:
				return false, exit.With(fmt.Errorf("wait for VirtualCluster %s: it was deleted", t.key), "List those that exist: kubectl vc list -A")
			}
			for _, line := range progress(last, vc) {
				sayf(w, "  %s", line)
			}
			last = vc
			return g.reached != nil && g.reached(vc), nil
		})
	return t.explainWait(ctx, err, g, last, timeout)
}

// listWatch lists and watches the VirtualCluster alone.
func (t target) listWatch() toolscache.ListerWatcher {
	only := []client.ListOption{
		client.InNamespace(t.key.Namespace),
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, t.key.Name)},
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &tenancyv1alpha1.VirtualClusterList{}
			err := t.client.List(ctx, list, append(only, &client.ListOptions{Raw: &options})...)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return t.client.Watch(ctx, &tenancyv1alpha1.VirtualClusterList{}, append(only, &client.ListOptions{Raw: &options})...)
		},
	}
}

// explainWait adds the state in which a VirtualCluster was when time ran out.
func (t target) explainWait(ctx context.Context, err error, g goal, last *tenancyv1alpha1.VirtualCluster, timeout time.Duration) error {
	if err == nil {
		return nil
	}
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		return coded
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := "it does not exist"
	if last != nil {
		cause = unready(last)
	}
	return &exit.Error{
		Code: exit.TimedOut,
		Err:  fmt.Errorf("wait for VirtualCluster %s: it is not %s after %s: %s", t.key, g.name, timeout, cause),
		Next: fmt.Sprintf("See its conditions and events: kubectl vc describe %s -n %s", t.key.Name, t.key.Namespace),
	}
}

// unready returns the conditions that are not true, in one line.
func unready(vc *tenancyv1alpha1.VirtualCluster) string {
	for _, c := range vc.Status.Conditions {
		if c.Status != metav1.ConditionTrue && c.Type != tenancyv1alpha1.ConditionReady {
			return describeCondition(c)
		}
	}
	if len(vc.Status.Conditions) == 0 {
		return "it has no conditions yet; check whether vc-manager runs"
	}
	return "phase " + string(vc.Status.Phase)
}

// progress returns a line for each condition that has changed.
func progress(before, after *tenancyv1alpha1.VirtualCluster) []string {
	var lines []string
	for _, c := range after.Status.Conditions {
		if before != nil {
			was := meta.FindStatusCondition(before.Status.Conditions, c.Type)
			if was != nil && was.Status == c.Status && was.Reason == c.Reason && was.Message == c.Message {
				continue
			}
		}
		lines = append(lines, describeCondition(c))
	}
	return lines
}

// describeCondition returns a condition in one line.
func describeCondition(c metav1.Condition) string {
	line := fmt.Sprintf("%s=%s (%s)", c.Type, c.Status, c.Reason)
	if c.Message != "" {
		line += ": " + terminal.Line(c.Message)
	}
	return line
}

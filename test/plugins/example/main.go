// Command example is a syncer of a platform's own: the project's, with one more
// validator.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/app"
)

// owned is a validator of pods: each names its owner in a label.
type owned struct{ plugins.TenantLocks }

func (*owned) Name() string                          { return "owned" }
func (*owned) Kinds() []schema.GroupKind             { return []schema.GroupKind{{Kind: "Pod"}} }
func (o *owned) Locker(tenant string) plugins.Locker { return o.Of(tenant) }

func (*owned) Validate(_ context.Context, r plugins.Request) error {
	pod, isPod := r.Object.(*corev1.Pod)
	if isPod && pod.Labels["example.com/owner"] == "" {
		return &plugins.RejectionError{Reason: "OwnerMissing", Message: "pods need the label example.com/owner"}
	}
	return nil
}

func registration() plugins.Registration {
	return plugins.Registration{ID: "owned", InitFn: func(plugins.Environment) (plugins.Validator, error) { return &owned{}, nil }}
}

func main() {
	if err := app.NewCommand(registration()).ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// options are the settings of a benchmark.
type options struct {
	isolation string
	figures   []string
	runs      int
	tenants   int
	atOnce    int
	starts    int
	requests  int
	pods      int
	wakes     int
	sleepers  int
	awake     int
	asleep    int
	idle      time.Duration
	settle    time.Duration
	profiles  string
	smoke     bool
}

// isolations are the values of --isolation.
func isolations() []string {
	return []string{string(tenancyv1alpha1.IsolationShared), string(tenancyv1alpha1.IsolationDedicated)}
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.StringVar(&o.isolation, "isolation", isolations()[0], fmt.Sprintf("isolation of the control planes, one of %q", isolations()))
	flags.StringSliceVar(&o.figures, "figures", figureNames(), "which figures to measure")
	flags.IntVar(&o.runs, "runs", 3, "how often each figure is measured")
	flags.IntVar(&o.tenants, "tenants", 20, "number of control planes whose memory is measured")
	flags.IntVar(&o.atOnce, "at-once", 20, "number of VirtualClusters that are created at once")
	flags.IntVar(&o.starts, "starts", 10, "number of VirtualClusters that are created one after the other, in each run")
	flags.IntVar(&o.requests, "requests", 2000, "number of requests of a kind, in each run")
	flags.IntVar(&o.pods, "pods", 100, "number of pods in a list")
	flags.IntVar(&o.wakes, "wakes", 50, "how often a control plane is woken by a request, in each run")
	flags.IntVar(&o.sleepers, "sleepers", 5000, "number of control planes that sleep whose memory is measured")
	flags.IntVar(&o.awake, "awake", 100, "number of tenants that run pods in one vc-standalone")
	flags.IntVar(&o.asleep, "asleep", 100, "number of tenants beside them that sleep")
	flags.DurationVar(&o.idle, "idle", time.Minute, "how long the CPU time of idle control planes is measured")
	flags.DurationVar(&o.settle, "settle", 10*time.Second, "how long memory must not change before it is measured")
	flags.StringVar(&o.profiles, "profiles", "", "directory for heap profiles of the processes whose memory is measured; "+
		"GODEBUG=memprofilerate=4096 makes them accurate")
	flags.BoolVar(&o.smoke, "smoke", false, "measure everything once in a tiny size, to see that it works")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if o.smoke {
		o.runs, o.tenants, o.atOnce, o.starts, o.requests, o.pods, o.wakes, o.sleepers = 1, 1, 1, 1, 10, 5, 1, 10
		o.awake, o.asleep = 1, 1
		o.idle, o.settle = time.Second, 0
	}
	return o, o.validate()
}

func figureNames() []string {
	names := make([]string, 0, len(figures()))
	for _, figure := range figures() {
		names = append(names, figure.name)
	}
	return names
}

func (o *options) validate() error {
	if !slices.Contains(isolations(), o.isolation) {
		return fmt.Errorf("--isolation=%s: it must be one of %q", o.isolation, isolations())
	}
	for _, name := range o.figures {
		if !slices.Contains(figureNames(), name) {
			return fmt.Errorf("--figures=%s: it must be some of %q", name, figureNames())
		}
	}
	if min(o.runs, o.tenants, o.atOnce, o.starts, o.requests, o.pods, o.wakes, o.sleepers, o.awake, o.asleep) < 1 {
		return errors.New("every number must be at least 1")
	}
	if o.idle <= 0 || o.settle < 0 {
		return errors.New("--idle must be positive, and --settle must not be negative")
	}
	return nil
}

func (o *options) measures(figure string) bool { return slices.Contains(o.figures, figure) }

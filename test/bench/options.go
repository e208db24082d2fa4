package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Options are what is measured, and on what.
type Options struct {
	// Kubeconfig leads to a super cluster that runs already; empty has one started.
	Kubeconfig string
	// Binaries is the directory of vc-standalone and vc-syncer.
	Binaries string
	// Out is the directory that gets a directory of results.
	Out string
	// Scenarios are the names of those to run; empty for all.
	Scenarios []string
	// Smoke makes every size that is not chosen a tiny one.
	Smoke bool
	// Runs is how often each figure is measured.
	Runs int
	// Nodes is how many nodes a super cluster has that is started.
	Nodes int
	// Tokens has pods ask for the token of a service account, which takes two more requests to make and one to remove.
	Tokens bool
	Sizes
}

// Sizes are how large the scenarios are.
type Sizes struct {
	// Throughput are the sizes of that scenario, as pods/tenants.
	Throughput []string
	// Tenants is how many tenants there are in the scenarios light, greedy, hung, restart and validation.
	Tenants int
	// Rate is how many pods a second are a light load, LightPods how many pods it takes.
	Rate      float64
	LightPods int
	// GreedyPods is how many pods each of the two greedy tenants creates at once, RegularPods how many each other does meanwhile,
	// WeightedPods how many each tenant has waiting when weights are measured.
	GreedyPods, RegularPods, WeightedPods int
	// HungPods is how many pods are on their way up when their tenant's apiserver stops.
	HungPods int
	// SleepyTenants is how many tenants there are at most whose webhooks sleep.
	SleepyTenants int
	// RestartPods is how many pods run when the syncer is started again, in all tenants together.
	RestartPods int
	// ValidationPods is how many pods each tenant creates while they are validated in one way or another.
	ValidationPods int
	// Idle is the numbers of tenants that have nothing to do, IdleWindow how long each number is watched.
	Idle       []int
	IdleWindow time.Duration
	// ChurnTenants is how many tenants come and go together, ChurnRounds how often.
	ChurnTenants, ChurnRounds int
	// RequestPods is how many pods are followed one by one.
	RequestPods int
}

// DefaultOptions are the sizes that two processors manage in a quarter of an hour.
func DefaultOptions() Options {
	return Options{
		Out:   "test/bench/results",
		Runs:  2,
		Nodes: 12,
		Sizes: Sizes{
			Throughput: []string{"1250/20"},
			Tenants:    20,
			Rate:       15,
			LightPods:  150,
			GreedyPods: 200, RegularPods: 5, WeightedPods: 100,
			HungPods: 100, SleepyTenants: 100,
			RestartPods: 600, ValidationPods: 20,
			Idle: []int{1, 20, 50}, IdleWindow: 5 * time.Second,
			ChurnTenants: 5, ChurnRounds: 2,
			RequestPods: 20,
		},
	}
}

// smoke are the sizes, by their flags, that show that everything works.
func smoke() map[string]string {
	return map[string]string{
		"runs": "1", "nodes": "2", "throughput": "20/2", "tenants": "4", "light-pods": "30", "greedy-pods": "40", "regular-pods": "5",
		"weighted-pods": "20", "hung-pods": "10", "sleepy-tenants": "5", "restart-pods": "20", "validation-pods": "5", "idle": "1,3", "idle-window": "2s",
		"churn-tenants": "1", "churn-rounds": "1", "request-pods": "3",
	}
}

// AddFlags adds a flag for each setting.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"kubeconfig of an admin of a super cluster with nodes played by kwok, the CRDs, vc-manager and no vc-syncer (default: start one)")
	flags.StringVar(&o.Binaries, "binaries", o.Binaries, "directory of vc-standalone and vc-syncer (default: that of this program)")
	flags.StringVar(&o.Out, "out", o.Out, "directory in which a directory with the results is made")
	flags.StringSliceVar(&o.Scenarios, "scenarios", o.Scenarios, "what to measure: "+strings.Join(scenarioNames(), ", ")+" (default all)")
	flags.BoolVar(&o.Smoke, "smoke", o.Smoke, "tiny sizes, but for those that are given, to see that everything works")
	flags.IntVar(&o.Runs, "runs", o.Runs, "how often each figure is measured; the median and the spread are shown")
	flags.IntVar(&o.Nodes, "nodes", o.Nodes, "how many nodes a super cluster gets that is started")
	flags.BoolVar(&o.Tokens, "tokens", o.Tokens, "pods with the token of a service account, which is issued and kept for each")
	o.addSizeFlags(flags)
}

func (s *Sizes) addSizeFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.Throughput, "throughput", s.Throughput, "throughput: sizes as pods/tenants, such as 1250/20,5000/50,10000/100")
	flags.IntVar(&s.Tenants, "tenants", s.Tenants, "light, greedy, hung, sleepy, hostile, restart and validation: how many tenants there are; beside the hung, sleepy and hostile ones")
	flags.Float64Var(&s.Rate, "rate", s.Rate, "light, greedy, hung, sleepy and hostile: pods a second, of all tenants together, that are a light load")
	flags.IntVar(&s.LightPods, "light-pods", s.LightPods, "light, hung, sleepy and hostile: how many pods are created at that rate")
	flags.IntVar(&s.GreedyPods, "greedy-pods", s.GreedyPods, "greedy: how many pods each of the two greedy tenants creates at once")
	flags.IntVar(&s.RegularPods, "regular-pods", s.RegularPods, "greedy: how many pods each of the other tenants creates meanwhile")
	flags.IntVar(&s.WeightedPods, "weighted-pods", s.WeightedPods, "greedy: how many pods each tenant has waiting when weights are measured")
	flags.IntVar(&s.HungPods, "hung-pods", s.HungPods, "hung: how many pods are on their way up when their tenant's apiserver stops")
	flags.IntVar(&s.SleepyTenants, "sleepy-tenants", s.SleepyTenants, "sleepy: how many tenants there are at most whose webhooks sleep")
	flags.IntVar(&s.ValidationPods, "validation-pods", s.ValidationPods, "validation: how many pods each tenant creates")
	flags.IntVar(&s.RestartPods, "restart-pods", s.RestartPods, "restart: how many pods run, in all tenants together")
	flags.IntSliceVar(&s.Idle, "idle", s.Idle, "idle: numbers of tenants")
	flags.DurationVar(&s.IdleWindow, "idle-window", s.IdleWindow, "idle: how long each number of tenants is watched")
	flags.IntVar(&s.ChurnTenants, "churn-tenants", s.ChurnTenants, "churn: how many tenants come and go together")
	flags.IntVar(&s.ChurnRounds, "churn-rounds", s.ChurnRounds, "churn: how often they do")
	flags.IntVar(&s.RequestPods, "request-pods", s.RequestPods, "requests: how many pods are followed one by one")
}

// shrink gives every flag that was not set its tiny size.
func (o *Options) shrink(flags *pflag.FlagSet) error {
	for name, value := range smoke() {
		if flags.Changed(name) {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("setting --%s for --smoke: %w", name, err)
		}
	}
	return nil
}

// Validate says which settings make no sense.
func (o *Options) Validate() error {
	var errs []error
	for _, name := range o.Scenarios {
		if !slices.Contains(scenarioNames(), name) {
			errs = append(errs, fmt.Errorf("--scenarios: there is no %q, but %s", name, strings.Join(scenarioNames(), ", ")))
		}
	}
	for _, number := range []struct {
		flag string
		n    int
	}{
		{"runs", o.Runs}, {"nodes", o.Nodes}, {"light-pods", o.LightPods}, {"greedy-pods", o.GreedyPods}, {"regular-pods", o.RegularPods},
		{"weighted-pods", o.WeightedPods}, {"hung-pods", o.HungPods}, {"sleepy-tenants", o.SleepyTenants}, {"restart-pods", o.RestartPods}, {"churn-tenants", o.ChurnTenants},
		{"validation-pods", o.ValidationPods},
		{"churn-rounds", o.ChurnRounds}, {"request-pods", o.RequestPods},
	} {
		if number.n < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d: it must be at least 1", number.flag, number.n))
		}
	}
	if o.Tenants < 4 {
		errs = append(errs, fmt.Errorf("--tenants is %d: it must be at least 4, two of which are greedy", o.Tenants))
	}
	if o.Rate <= 0 || o.IdleWindow <= 0 {
		errs = append(errs, errors.New("--rate and --idle-window must be above 0"))
	}
	if len(o.Idle) < 2 || !slices.IsSorted(o.Idle) || o.Idle[0] < 1 {
		errs = append(errs, fmt.Errorf("--idle is %v: it must be at least two numbers, the smallest first", o.Idle))
	}
	_, err := o.throughputs()
	return errors.Join(append(errs, err)...)
}

// size is a number of pods in a number of tenants.
type size struct{ pods, tenants int }

// String names the size in a report.
func (s size) String() string { return fmt.Sprintf("%d pods in %d tenants", s.pods, s.tenants) }

// mostThroughput is the most that there is at a time of any size of that scenario.
func (s *Sizes) mostThroughput() (most demand) {
	sizes, _ := s.throughputs() // they have been validated
	for _, size := range sizes {
		most = demand{max(most.tenants, size.tenants), max(most.pods, size.pods)}
	}
	return most
}

// mostGreedy is the most that there is at a time while tenants are greedy, or wait for their share.
func (s *Sizes) mostGreedy() demand {
	return demand{s.Tenants, max(greedyTenants*s.GreedyPods, s.Tenants*s.WeightedPods)}
}

// throughputs are the sizes of that scenario.
func (s *Sizes) throughputs() ([]size, error) {
	var sizes []size
	for _, text := range s.Throughput {
		p, t, _ := strings.Cut(text, "/")
		pods, errPods := strconv.Atoi(p)
		tenants, errTenants := strconv.Atoi(t)
		if errPods != nil || errTenants != nil || tenants < 1 || pods < tenants {
			return nil, fmt.Errorf("--throughput: %q is not pods/tenants, such as 1250/20, with a pod for each tenant at least", text)
		}
		sizes = append(sizes, size{pods, tenants})
	}
	return sizes, nil
}

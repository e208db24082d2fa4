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

// Options says what to measure, and on what.
type Options struct {
	// Kubeconfig is the path of the kubeconfig of an existing super cluster; if
	// empty, one is started.
	Kubeconfig string
	// Binaries is the directory of vc-standalone and vc-syncer.
	Binaries string
	// Out is the parent of the directory with the results.
	Out string
	// Scenarios are the names of the scenarios to run; empty for all.
	Scenarios []string
	// Smoke makes every size tiny, and every wait short, that is not set.
	Smoke bool
	// Runs is the number of times that each figure is measured.
	Runs int
	// Nodes is the number of nodes of a super cluster that is started.
	Nodes int
	// Tokens mounts the token of a service account in pods, which takes two
	// more requests to create a pod and one to delete it.
	Tokens bool
	Waits
	Sizes
}

// Waits are the times that separate a measurement from what came before it.
type Waits struct {
	// Quiet is the time without requests after which a syncer counts as settled.
	Quiet time.Duration
	// Lead is the time in which the first pods of a load run and the garbage before
	// the measurement is collected.
	Lead time.Duration
	// Settle is the time for which a process has nothing to do before its memory
	// is read.
	Settle time.Duration
}

// Sizes are the sizes of the scenarios.
type Sizes struct {
	// Throughput has the sizes of throughput, as pods/tenants.
	Throughput []string
	// Tenants is the number of tenants in light, greedy, hung, restart and
	// validation.
	Tenants int
	// Rate is the rate of a light load in pods a second, LightPods its number
	// of pods.
	Rate      float64
	LightPods int
	// GreedyPods is the number of pods that each of the two greedy tenants
	// creates at once, RegularPods the number that each other tenant creates
	// meanwhile, WeightedPods the number that each tenant has waiting when
	// weights are measured.
	GreedyPods, RegularPods, WeightedPods int
	// HungPods is the number of pods to sync up when their tenant's apiserver
	// stops.
	HungPods int
	// SleepyTenants is the highest number of tenants whose webhooks sleep.
	SleepyTenants int
	// AttackPods is the number of gated pods during an attack by selectors.
	AttackPods int
	// RestartPods is the number of running pods, in all tenants together, when
	// the syncer is restarted.
	RestartPods int
	// ValidationPods is the number of pods that each tenant creates in each
	// variant of validation.
	ValidationPods int
	// Idle has the numbers of idle tenants, IdleWindow is the time for which
	// each is observed.
	Idle       []int
	IdleWindow time.Duration
	// ChurnTenants is the number of tenants that are created and deleted
	// together, ChurnRounds how often.
	ChurnTenants, ChurnRounds int
	// RequestPods is the number of pods that are measured one by one.
	RequestPods int
	// Networks is the number of networks of one tenant, NetworkTenants the number
	// of tenants with a few of them.
	Networks, NetworkTenants int
	// WaitingPods is the number of pods on a network that never gets ready.
	WaitingPods int
	// ProjectObjects is the number of objects of all projects together.
	ProjectObjects int
	// ConvertedTenants is the number of converted tenants that are created at once,
	// ConvertedPods that of the pods of two of them together.
	ConvertedTenants, ConvertedPods int
	// GatewayRequests is the number of requests through the gateway that are
	// measured one by one, GatewayWindow the time for which as many as possible are
	// sent, GatewayTenants the number of tenants that it has.
	GatewayRequests, GatewayTenants int
	GatewayWindow                   time.Duration
}

// DefaultOptions returns sizes that two processors manage in a quarter of an
// hour.
func DefaultOptions() Options {
	return Options{
		Out:   "test/bench/results",
		Runs:  2,
		Nodes: 12,
		Waits: Waits{Quiet: 3 * time.Second, Lead: 5 * time.Second, Settle: 10 * time.Second},
		Sizes: Sizes{
			Throughput: []string{"1250/20"},
			Tenants:    20,
			Rate:       15,
			LightPods:  150,
			GreedyPods: 200, RegularPods: 5, WeightedPods: 100,
			HungPods: 100, SleepyTenants: 100, AttackPods: 500,
			RestartPods: 600, ValidationPods: 20,
			Idle: []int{1, 20, 50}, IdleWindow: 5 * time.Second,
			ChurnTenants: 5, ChurnRounds: 2,
			RequestPods: 20,
			Networks:    100, NetworkTenants: 25, WaitingPods: 2000,
			ProjectObjects:   10000,
			ConvertedTenants: 300, ConvertedPods: 10000,
			GatewayRequests: 2000, GatewayTenants: 1000, GatewayWindow: 5 * time.Second,
		},
	}
}

// smoke returns the waits and sizes of a smoke test, by flag.
func smoke() map[string]string {
	return map[string]string{
		"runs": "1", "nodes": "2", "quiet": "1s", "lead": "0s", "settle": "0s",
		"throughput": "8/2", "tenants": "4", "light-pods": "8", "greedy-pods": "10", "regular-pods": "2",
		"weighted-pods": "8", "hung-pods": "4", "sleepy-tenants": "5", "attack-pods": "5", "restart-pods": "8", "validation-pods": "2", "idle": "1,2",
		"idle-window": "1s", "churn-tenants": "1", "churn-rounds": "1", "request-pods": "1",
		"networks": "3", "network-tenants": "2", "waiting-pods": "20", "project-objects": "200", "converted-tenants": "3", "converted-pods": "120",
		"gateway-requests": "20", "gateway-tenants": "5", "gateway-window": "1s",
	}
}

// AddFlags adds a flag for each option.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"admin kubeconfig of a super cluster with nodes simulated by kwok, the CRDs, vc-manager and no vc-syncer (default: start one)")
	flags.StringVar(&o.Binaries, "binaries", o.Binaries, "directory of vc-standalone and vc-syncer (default: that of this program)")
	flags.StringVar(&o.Out, "out", o.Out, "parent of the directory with the results")
	flags.StringSliceVar(&o.Scenarios, "scenarios", o.Scenarios, "scenarios to run: "+strings.Join(scenarioNames(), ", ")+" (default all)")
	flags.BoolVar(&o.Smoke, "smoke", o.Smoke, "smoke test: tiny sizes and short waits, except those that are set")
	flags.IntVar(&o.Runs, "runs", o.Runs, "number of times that each figure is measured; the median and the spread are reported")
	flags.IntVar(&o.Nodes, "nodes", o.Nodes, "number of nodes, if a super cluster is started")
	flags.BoolVar(&o.Tokens, "tokens", o.Tokens, "mount the token of a service account in each pod")
	o.addWaitFlags(flags)
	o.addSizeFlags(flags)
}

func (w *Waits) addWaitFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&w.Quiet, "quiet", w.Quiet, "time without requests after which a syncer counts as settled")
	flags.DurationVar(&w.Lead, "lead", w.Lead, "time in which the first pods of a load run and garbage is collected, before pods are measured")
	flags.DurationVar(&w.Settle, "settle", w.Settle, "converted: time for which a process has nothing to do before its memory is read")
}

func (s *Sizes) addSizeFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.Throughput, "throughput", s.Throughput, "throughput: sizes as pods/tenants, such as 1250/20,5000/50,10000/100")
	flags.IntVar(&s.Tenants, "tenants", s.Tenants, "light, greedy, hung, sleepy, hostile, restart and validation: number of tenants, not counting hung, sleepy and hostile ones")
	flags.Float64Var(&s.Rate, "rate", s.Rate, "light, greedy, hung, sleepy and hostile: rate of a light load, in pods a second of all tenants together")
	flags.IntVar(&s.LightPods, "light-pods", s.LightPods, "light, hung, sleepy and hostile: number of pods created at that rate")
	flags.IntVar(&s.GreedyPods, "greedy-pods", s.GreedyPods, "greedy: number of pods that each of the two greedy tenants creates at once")
	flags.IntVar(&s.RegularPods, "regular-pods", s.RegularPods, "greedy: number of pods that each of the other tenants creates meanwhile")
	flags.IntVar(&s.WeightedPods, "weighted-pods", s.WeightedPods, "greedy: number of pods that each tenant has waiting when weights are measured")
	flags.IntVar(&s.HungPods, "hung-pods", s.HungPods, "hung: number of pods to sync up when their tenant's apiserver stops")
	flags.IntVar(&s.SleepyTenants, "sleepy-tenants", s.SleepyTenants, "sleepy: highest number of tenants whose webhooks sleep")
	flags.IntVar(&s.AttackPods, "attack-pods", s.AttackPods, "hostile: number of gated pods during an attack by selectors")
	flags.IntVar(&s.ValidationPods, "validation-pods", s.ValidationPods, "validation: number of pods that each tenant creates")
	flags.IntVar(&s.RestartPods, "restart-pods", s.RestartPods, "restart: number of running pods, in all tenants together")
	flags.IntSliceVar(&s.Idle, "idle", s.Idle, "idle: numbers of tenants")
	flags.DurationVar(&s.IdleWindow, "idle-window", s.IdleWindow, "idle and converted: time for which idle tenants are observed")
	flags.IntVar(&s.ChurnTenants, "churn-tenants", s.ChurnTenants, "churn: number of tenants that are created and deleted together")
	flags.IntVar(&s.ChurnRounds, "churn-rounds", s.ChurnRounds, "churn: number of rounds")
	flags.IntVar(&s.RequestPods, "request-pods", s.RequestPods, "requests: number of pods that are measured one by one")
	flags.IntVar(&s.Networks, "networks", s.Networks, "networks: number of networks in one tenant")
	flags.IntVar(&s.NetworkTenants, "network-tenants", s.NetworkTenants, "networks: number of tenants with three networks each")
	flags.IntVar(&s.WaitingPods, "waiting-pods", s.WaitingPods, "networks: number of pods on a network that never gets ready")
	flags.IntVar(&s.ProjectObjects, "project-objects", s.ProjectObjects, "projects: number of objects of all projects together")
	flags.IntVar(&s.ConvertedTenants, "converted-tenants", s.ConvertedTenants, "converted: number of tenants that are created at once")
	flags.IntVar(&s.ConvertedPods, "converted-pods", s.ConvertedPods, "converted: number of pods among which a tenant has 100")
	flags.IntVar(&s.GatewayRequests, "gateway-requests", s.GatewayRequests, "gateway and converted: number of requests that are measured one by one")
	flags.IntVar(&s.GatewayTenants, "gateway-tenants", s.GatewayTenants, "gateway: number of tenants that it has")
	flags.DurationVar(&s.GatewayWindow, "gateway-window", s.GatewayWindow, "gateway: time for which as many requests as possible are sent")
}

// shrink sets every flag that was not set to its tiny size or short time.
func (o *Options) shrink(flags *pflag.FlagSet) error {
	for name, value := range smoke() {
		if flags.Changed(name) {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("set --%s for --smoke: %w", name, err)
		}
	}
	return nil
}

// Validate returns the invalid options.
func (o *Options) Validate() error {
	var errs []error
	for _, name := range o.Scenarios {
		if !slices.Contains(scenarioNames(), name) {
			errs = append(errs, fmt.Errorf("--scenarios: unknown scenario %q, must be one of %s", name, strings.Join(scenarioNames(), ", ")))
		}
	}
	for _, number := range []struct {
		flag string
		n    int
	}{
		{"runs", o.Runs}, {"nodes", o.Nodes}, {"light-pods", o.LightPods}, {"greedy-pods", o.GreedyPods}, {"regular-pods", o.RegularPods},
		{"weighted-pods", o.WeightedPods}, {"hung-pods", o.HungPods}, {"sleepy-tenants", o.SleepyTenants}, {"attack-pods", o.AttackPods}, {"restart-pods", o.RestartPods}, {"churn-tenants", o.ChurnTenants},
		{"validation-pods", o.ValidationPods},
		{"churn-rounds", o.ChurnRounds}, {"request-pods", o.RequestPods}, {"networks", o.Networks}, {"network-tenants", o.NetworkTenants},
		{"waiting-pods", o.WaitingPods},
		{"project-objects", o.ProjectObjects}, {"converted-tenants", o.ConvertedTenants},
		{"gateway-requests", o.GatewayRequests}, {"gateway-tenants", o.GatewayTenants},
	} {
		if number.n < 1 {
			errs = append(errs, fmt.Errorf("--%s is %d: it must be at least 1", number.flag, number.n))
		}
	}
	if o.Tenants < 4 {
		errs = append(errs, fmt.Errorf("--tenants is %d: it must be at least 4, two of which are greedy", o.Tenants))
	}
	if o.ConvertedPods <= listedPods {
		errs = append(errs, fmt.Errorf("--converted-pods is %d: it must be more than %d, which one tenant has", o.ConvertedPods, listedPods))
	}
	if o.Rate <= 0 || o.IdleWindow <= 0 || o.GatewayWindow <= 0 {
		errs = append(errs, errors.New("--rate, --idle-window and --gateway-window must be above 0"))
	}
	if o.Quiet <= 0 || o.Lead < 0 || o.Settle < 0 {
		errs = append(errs, errors.New("--quiet must be above 0, --lead and --settle must not be below 0"))
	}
	if len(o.Idle) < 2 || !slices.IsSorted(o.Idle) || o.Idle[0] < 1 {
		errs = append(errs, fmt.Errorf("--idle is %v: it must be at least two numbers, the smallest first", o.Idle))
	}
	_, err := o.throughputs()
	return errors.Join(append(errs, err)...)
}

// size is a number of pods in a number of tenants.
type size struct{ pods, tenants int }

// String returns the size as reports show it.
func (s size) String() string { return fmt.Sprintf("%d pods in %d tenants", s.pods, s.tenants) }

// mostThroughput returns the peak demand of that scenario at any size.
func (s *Sizes) mostThroughput() (most demand) {
	sizes, _ := s.throughputs() // Validate has parsed them
	for _, size := range sizes {
		most = demand{max(most.tenants, size.tenants), max(most.pods, size.pods)}
	}
	return most
}

// mostGreedy returns the peak demand of that scenario.
func (s *Sizes) mostGreedy() demand {
	return demand{s.Tenants, max(greedyTenants*s.GreedyPods, s.Tenants*s.WeightedPods)}
}

// throughputs parses the sizes of that scenario.
func (s *Sizes) throughputs() ([]size, error) {
	var sizes []size
	for _, text := range s.Throughput {
		p, t, _ := strings.Cut(text, "/")
		pods, errPods := strconv.Atoi(p)
		tenants, errTenants := strconv.Atoi(t)
		if errPods != nil || errTenants != nil || tenants < 1 || pods < tenants {
			return nil, fmt.Errorf("--throughput: %q is not pods/tenants, such as 1250/20, with at least one pod for each tenant", text)
		}
		sizes = append(sizes, size{pods, tenants})
	}
	return sizes, nil
}

package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"defaults":                   {nil, ""},
		"smoke sizes":                {[]string{"--smoke"}, ""},
		"large sizes":                {[]string{"--throughput=1250/20,5000/50,10000/100", "--idle=1,20,50,100", "--tenants=50"}, ""},
		"an unknown scenario":        {[]string{"--scenarios=light,heavy"}, "light, greedy"},
		"no run":                     {[]string{"--runs=0"}, "--runs"},
		"no pods":                    {[]string{"--hung-pods=0"}, "--hung-pods"},
		"only greedy tenants":        {[]string{"--tenants=2"}, "--tenants"},
		"no rate":                    {[]string{"--rate=0"}, "--rate"},
		"one number of idle tenants": {[]string{"--idle=20"}, "--idle"},
		"fewer idle tenants":         {[]string{"--idle=20,1"}, "--idle"},
		"no quiet":                   {[]string{"--quiet=0s"}, "--quiet"},
		"a negative wait":            {[]string{"--settle=-1s"}, "--settle"},
		"a size without tenants":     {[]string{"--throughput=1250"}, `"1250"`},
		"fewer pods than tenants":    {[]string{"--throughput=5/20"}, `"5/20"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := parsed(t, tc.args)
			err := o.Validate()
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// TestSmokeLeavesWhatIsChosen tests that --smoke keeps a size that is set and
// shrinks all others, and the waits.
func TestSmokeLeavesWhatIsChosen(t *testing.T) {
	o, full := parsed(t, []string{"--smoke", "--light-pods=77"}), DefaultOptions()
	if o.LightPods != 77 {
		t.Errorf("--smoke changed 77 pods to %d", o.LightPods)
	}
	for name, pair := range map[string][2]int{
		"runs": {o.Runs, full.Runs}, "greedy pods": {o.GreedyPods, full.GreedyPods}, "restart pods": {o.RestartPods, full.RestartPods},
		"attack pods": {o.AttackPods, full.AttackPods}, "churn rounds": {o.ChurnRounds, full.ChurnRounds}, "idle tenants": {slices.Max(o.Idle), slices.Max(full.Idle)},
		"quiet": {int(o.Quiet), int(full.Quiet)}, "lead": {int(o.Lead), int(full.Lead)}, "settle": {int(o.Settle), int(full.Settle)},
	} {
		if pair[0] >= pair[1] {
			t.Errorf("%s: %d with --smoke, %d without", name, pair[0], pair[1])
		}
	}
}

// parsed returns the options of a command line.
func parsed(t *testing.T, args []string) Options {
	t.Helper()
	o := DefaultOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if o.Smoke {
		if err := o.shrink(flags); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/component"
)

func TestFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{"clusters": [{"name": "super", "cluster": {"server": "https://super.example"}}],
		"contexts": [{"name": "it", "context": {"cluster": "super"}}], "current-context": "it"}`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var got Options
	command := newCommand(func(_ context.Context, super *rest.Config, options Options) error {
		if super.Host != "https://super.example" {
			t.Errorf("the super cluster is %s", super.Host)
		}
		got = options
		return nil
	})
	command.SetArgs([]string{
		"--kubeconfig", file, "--workers=7", "--slow-workers=9", "--tenant-cap=3", "--tenant-memory=3Gi", "--timeout=4s",
		"--node-linger=5s", "--patrol=6s", "--wake-interval=8m", "--health-probe-bind-address=0",
		"--enable-quota-validation", "--quota-validators=quota,rules,mine", "--quota-rules=rules.yaml", "--quota-validation-timeout=3s", "--quota-validation-fail-open",
		"--share-tenants", "--share-namespace=leases", "--vn-agent-address=agent.example:10550",
		"--converted-webhook-service=ns/hook", "--converted-webhook-bind-address=:7", "--converted-webhook-pod-address=10.0.0.7",
		"--converted-objects=8", "--converted-storage=9Mi",
	})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := Options{
		Workers: 7, SlowWorkers: 9, TenantCap: 3, TenantMemory: resource.MustParse("3Gi"),
		Timeout: 4 * time.Second, NodeLinger: 5 * time.Second, Patrol: 6 * time.Second, WakeInterval: 8 * time.Minute,
		QuotaValidation: true, QuotaValidators: []string{"quota", "rules", "mine"}, QuotaRules: "rules.yaml", QuotaValidationTimeout: 3 * time.Second, QuotaValidationFailOpen: true,
		ShareTenants: true, ShareNamespace: "leases", AgentAddress: "agent.example:10550",
		ConvertedWebhook:            types.NamespacedName{Namespace: "ns", Name: "hook"},
		ConvertedWebhookBindAddress: ":7", ConvertedWebhookAddress: "10.0.0.7",
		ConvertedObjects: 8, ConvertedStorage: resource.MustParse("9Mi"),
		Options: component.Options{HealthProbeBindAddress: "0"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Options{}, "Options.Logger", "Registerer")); diff != "" {
		t.Error(diff)
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"the defaults are good":  {func(*Options) {}, ""},
		"no worker":              {func(o *Options) { o.Workers = 0 }, "--workers"},
		"no cap":                 {func(o *Options) { o.TenantCap = -1 }, "--tenant-cap"},
		"no slow worker":         {func(o *Options) { o.SlowWorkers = 0 }, "--slow-workers"},
		"hardly any time":        {func(o *Options) { o.Timeout = time.Millisecond }, "--timeout"},
		"no time for validators": {func(o *Options) { o.QuotaValidation, o.QuotaValidationTimeout = true, 0 }, "--quota-validation-timeout"},
		"more time for validators than for all": {
			func(o *Options) { o.QuotaValidation, o.QuotaValidationTimeout = true, o.Timeout }, "--quota-validation-timeout",
		},
		"no validators":           {func(o *Options) { o.QuotaValidationTimeout = o.Timeout }, ""},
		"one works, and all do":   {func(o *Options) { o.ShareTenants, o.LeaderElect = true, true }, "--share-tenants and --leader-elect"},
		"rules that are not read": {func(o *Options) { o.QuotaRules = "rules.yaml" }, "--quota-rules needs --enable-quota-validation"},
		"rules that no validator reads": {
			func(o *Options) {
				o.QuotaRules, o.QuotaValidation, o.QuotaValidators = "rules.yaml", true, []string{"quota"}
			}, "rules among --quota-validators",
		},
		"rules that all read":    {func(o *Options) { o.QuotaRules, o.QuotaValidation = "rules.yaml", true }, ""},
		"leases nowhere":         {func(o *Options) { o.ShareTenants, o.ShareNamespace = true, "" }, "--share-namespace"},
		"an agent at an address": {func(o *Options) { o.AgentAddress = "[fd00::7]:10550" }, ""},
		"an agent without port":  {func(o *Options) { o.AgentAddress = "10.0.0.7" }, "--vn-agent-address"},
		"an agent anywhere":      {func(o *Options) { o.AgentAddress = ":10550" }, "--vn-agent-address"},
		"an agent of port 0":     {func(o *Options) { o.AgentAddress = "10.0.0.7:0" }, "--vn-agent-address"},
		"a webhook without validators": {
			func(o *Options) { o.ConvertedWebhook.Name = "hook" }, "--converted-webhook-service needs --enable-quota-validation",
		},
		"a webhook nowhere": {
			func(o *Options) {
				o.QuotaValidation, o.ConvertedWebhook.Name, o.ConvertedWebhookBindAddress = true, "hook", "9443"
			}, "--converted-webhook-bind-address",
		},
		"a webhook at a name": {
			func(o *Options) {
				o.QuotaValidation, o.ConvertedWebhook.Name, o.ConvertedWebhookAddress = true, "hook", "pod"
			}, "--converted-webhook-pod-address",
		},
		"a short patrol interval": {func(o *Options) { o.Patrol = 0 }, "--patrol"},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			tc.change(&o)
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

func TestLogGaps(t *testing.T) {
	logged := func(podCIDRs ...string) string {
		var lines strings.Builder
		o := DefaultOptions()
		o.PodCIDRs = podCIDRs
		o.Logger = funcr.New(func(_, args string) { lines.WriteString(args) }, funcr.Options{})
		o.logGaps()
		return lines.String()
	}
	if got := logged(); strings.Count(got, "No --pod-cidr: ") != 1 {
		t.Errorf("without ranges of pods, the log has %q", got)
	}
	if got := logged("10.244.0.0/16"); got != "" {
		t.Errorf("with ranges of pods, the log has %q", got)
	}
}

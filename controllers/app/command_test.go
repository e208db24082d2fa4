package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/addons/dns"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/external"
	"github.com/virtualcluster/virtualcluster/controllers/store"
	"github.com/virtualcluster/virtualcluster/internal/component"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const superKubeconfig = `
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: super, user: admin}}]
clusters: [{name: super, cluster: {server: "https://super.example"}}]
users: [{name: admin, user: {token: t}}]
`

func TestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(superKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		args []string
		want Options
		err  string
	}{
		"Defaults": {nil, Options{
			ServiceCIDRPrefix: 20, CoreDNSImage: dns.DefaultImage, WebhookPort: 9443, Store: store.Defaults(), Options: component.Defaults(),
		}, ""},
		"All": {
			[]string{
				"--default-provisioner=External", "--leader-elect", "--leader-elect-namespace=vc-system",
				"--metrics-bind-address=:8443", "--health-probe-bind-address=0", "-v=4",
				"--service-cidr-pool=10.104.0.0/13", "--service-cidr-prefix=22", "--coredns-image=",
				"--webhook-cert-dir=certs", "--webhook-port=10250",
				"--vn-agent-address=agent.example:10550", "--vn-agent-ca-file=agent-ca.crt",
				"--store-service=vc-system/vc-store", "--store-members=3", "--store-quota=4Gi",
			},
			Options{
				DefaultProvisioner: tenancyv1alpha1.ProvisionerExternal,
				ServiceCIDRPool:    "10.104.0.0/13", ServiceCIDRPrefix: 22,
				WebhookCertDir: "certs", WebhookPort: 10250,
				AgentAddress: "agent.example:10550", AgentCAFile: "agent-ca.crt",
				Store: store.Store{
					Service: types.NamespacedName{Namespace: "vc-system", Name: "vc-store"}, Members: 3,
					Quota: resource.QuantityValue{Quantity: resource.MustParse("4Gi")},
				},
				Options: component.Options{
					LeaderElect: true, LeaderElectNamespace: "vc-system",
					MetricsBindAddress: ":8443", HealthProbeBindAddress: "0",
				},
			}, "",
		},
		"UnknownFlag": {[]string{"--no-such-flag"}, Options{}, "unknown flag"},
		"Webhook": {
			[]string{"--webhook-service=vc-system/vc-manager-webhook"},
			Options{
				ServiceCIDRPrefix: 20, CoreDNSImage: dns.DefaultImage, WebhookPort: 9443, Store: store.Defaults(), Options: component.Defaults(),
				WebhookService: types.NamespacedName{Namespace: "vc-system", Name: "vc-manager-webhook"},
			}, "",
		},
		"NoQuantity":   {[]string{"--store-quota=much"}, Options{}, "--store-quota"},
		"NoService":    {[]string{"--webhook-service=vc-manager-webhook"}, Options{}, "is not NAMESPACE/NAME"},
		"Argument":     {[]string{"serve"}, Options{}, "unknown command"},
		"NoKubeconfig": {[]string{"--kubeconfig=" + file + ".missing"}, Options{}, "find the super cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got Options
			command := newCommand(func(_ context.Context, superCluster *rest.Config, options Options) error {
				if superCluster.Host != "https://super.example" {
					t.Errorf("host %s", superCluster.Host)
				}
				got = options
				return nil
			})
			command.SetArgs(append([]string{"--kubeconfig=" + file}, tc.args...))
			err := command.ExecuteContext(context.Background())
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "\n") {
					t.Errorf("got %v, want one line with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreTypes(logr.Logger{}), cmpopts.IgnoreFields(Options{}, "Registerer")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// registrations are those of a program with External, and Hosted that its flags
// do not enable.
func registrations() []provisioner.Registration {
	return []provisioner.Registration{
		{
			Name: tenancyv1alpha1.ProvisionerExternal, Summary: "elsewhere",
			New: func(manager.Manager) (provisioner.Provisioner, error) { return &external.Provisioner{}, nil },
		},
		{
			Name: tenancyv1alpha1.ProvisionerHosted, Summary: "here",
			AddFlags: func(flags *pflag.FlagSet) { flags.Bool("host", false, "host control planes") },
			New: func(manager.Manager) (provisioner.Provisioner, error) {
				return nil, fmt.Errorf("%w: --host is not set", provisioner.ErrDisabled)
			},
		},
	}
}

func TestDefaultProvisioner(t *testing.T) {
	for kind, want := range map[tenancyv1alpha1.ProvisionerType]string{
		"": "", "External": "",
		"Native": "no provisioner Native; it has: External",
		"Hosted": "--host is not set\n--default-provisioner: this manager has no provisioner Hosted; it has: External",
		"hosted": "no provisioner hosted; it has: External",
		"Magic":  "no provisioner Magic; it has: External",
	} {
		_, err := (&Options{DefaultProvisioner: kind}).provisioners(nil, registrations())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", kind, err, want)
		}
	}
}

// TestHelp: it lists the provisioners of the program, and their flags.
func TestHelp(t *testing.T) {
	command := NewCommand(registrations()...)
	out := &strings.Builder{}
	command.SetOut(out)
	command.SetArgs([]string{"--help"})
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  External  elsewhere\n", "\n  Hosted    here\n", "--host ", "--default-provisioner"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
}

// TestEmbeddedManagerListensNowhere: the zero value of the options is for a
// manager inside another process.
func TestEmbeddedManagerListensNowhere(t *testing.T) {
	options, err := (&Options{}).manager()
	if err != nil {
		t.Fatal(err)
	}
	if options.Metrics.BindAddress != "0" || options.HealthProbeBindAddress != "0" || options.LeaderElection {
		t.Errorf("metrics at %s, probes at %s, leader election %v",
			options.Metrics.BindAddress, options.HealthProbeBindAddress, options.LeaderElection)
	}
}

func TestOneCertificateOfTheWebhook(t *testing.T) {
	err := (&Options{WebhookCertDir: "certs", WebhookService: types.NamespacedName{Namespace: "a", Name: "b"}}).Validate()
	if !errors.Is(err, errTwoCertificates) {
		t.Errorf("got %v", err)
	}
}

func TestValidateStore(t *testing.T) {
	named := types.NamespacedName{Namespace: "vc-system", Name: "vc-store"}
	for name, c := range map[string]struct {
		store func(*store.Store)
		want  string // in the error; empty if there is none
	}{
		"none":       {func(s *store.Store) { s.Service, s.Members = types.NamespacedName{}, 0 }, ""},
		"fine":       {func(*store.Store) {}, ""},
		"no members": {func(s *store.Store) { s.Members = 0 }, "1 to 9 members"},
		"too many":   {func(s *store.Store) { s.Members = 11 }, "1 to 9 members"},
		"too small":  {func(s *store.Store) { s.Quota.Quantity = resource.MustParse("1Mi") }, "64Mi to 1Ti"},
		"too large":  {func(s *store.Store) { s.Quota.Quantity = resource.MustParse("2Ti") }, "64Mi to 1Ti"},
	} {
		options := Options{Store: store.Defaults()}
		options.Store.Service = named
		c.store(&options.Store)
		if err := options.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestValidateServiceRanges(t *testing.T) {
	for name, c := range map[string]struct {
		pool   string
		prefix int
		want   string // in the error; empty if there is none
	}{
		"none":            {"", 20, ""},
		"fine":            {"10.104.0.0/13", 20, ""},
		"no network":      {"10.104.0.0", 20, "CIDR notation"},
		"parts too large": {"10.104.0.0/13", 12, "larger than the whole"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Options{ServiceCIDRPool: c.pool, ServiceCIDRPrefix: c.prefix}).Validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSecondaryServicePool(t *testing.T) {
	for name, c := range map[string]struct {
		first, second, want string
	}{
		"as many addresses": {"10.104.0.0/13", "fd00:104::/105", ""},
		"IPv6 first":        {"fd00:104::/105", "10.104.0.0/13", "--service-cidr-prefix"},
		"none":              {"10.104.0.0/13", "", ""},
		"of one family":     {"10.104.0.0/13", "10.112.0.0/13", "of the other IP family"},
		"alone":             {"", "fd00:104::/105", "--service-cidr-pool is"},
		"no network":        {"10.104.0.0/13", "fd00:104::", "of the other IP family"},
		"with host bits":    {"10.104.0.0/13", "fd00:104::1/105", "host bits"},
		"without a part":    {"10.104.0.0/13", "fd00:104::/120", "larger than the whole"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{ServiceCIDRPool: c.first, ServiceCIDRPrefix: 20, SecondaryServiceCIDRPool: c.second}
			if err := o.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if pool := o.secondaryServicePool(); c.want == "" && c.second != "" && pool.PartBits != 116 {
				t.Errorf("parts of /%d", pool.PartBits)
			}
		})
	}
}

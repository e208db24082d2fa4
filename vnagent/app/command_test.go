package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	command := newCommand(func(_ context.Context, _ *rest.Config, options Options) error {
		got = options
		return nil
	})
	command.SetArgs([]string{
		"--kubeconfig", file, "--bind-address=10.0.0.7:443", "--tls-cert-file=agent.crt", "--tls-private-key-file=agent.key",
		"--streams-per-tenant=7", "--health-probe-bind-address=0",
	})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := Options{
		Address: "10.0.0.7:443", CertFile: "agent.crt", KeyFile: "agent.key", StreamsPerTenant: 7,
		Options: component.Options{HealthProbeBindAddress: "0"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Options{}, "Options.Logger", "Registerer")); diff != "" {
		t.Error(diff)
	}
	if command.Flags().Lookup("leader-elect") != nil {
		t.Error("all replicas work, so there is no leader to elect")
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"good":           {func(*Options) {}, ""},
		"no address":     {func(o *Options) { o.Address = "" }, "--bind-address"},
		"no certificate": {func(o *Options) { o.CertFile = "" }, "--tls-cert-file"},
		"no key":         {func(o *Options) { o.KeyFile = "" }, "--tls-private-key-file"},
		"no streams":     {func(o *Options) { o.StreamsPerTenant = 0 }, "--streams-per-tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.CertFile, o.KeyFile = "agent.crt", "agent.key"
			tc.change(&o)
			err := o.Validate()
			if tc.want == "" && err == nil {
				return
			}
			if err == nil || tc.want == "" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

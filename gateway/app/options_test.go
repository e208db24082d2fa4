package app

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestDefaultOptions(t *testing.T) {
	if got := DefaultOptions().SuperCluster; got != NoUsers {
		t.Errorf("the super cluster is open to %s by default", got)
	}
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"good":             {func(*Options) {}, ""},
		"no address":       {func(o *Options) { o.Address = "" }, "--bind-address"},
		"no certificate":   {func(o *Options) { o.CertFile = "" }, "--tls-secret"},
		"two certificates": {func(o *Options) { o.CertSecret = types.NamespacedName{Namespace: "a", Name: "b"} }, "--tls-secret"},
		"a Secret without hosts": {func(o *Options) {
			o.CertFile, o.KeyFile, o.CertSecret = "", "", types.NamespacedName{Namespace: "a", Name: "b"}
		}, "--tls-hosts"},
		"a domain in capitals":             {func(o *Options) { o.Domain = "GW.example.com" }, "--domain"},
		"fewer than no passed connections": {func(o *Options) { o.Limits.Passed = -1 }, "--passed-connections"},
		"a super cluster for all":          {func(o *Options) { o.SuperCluster = "All" }, "--super-cluster"},
		"a network that is none":           {func(o *Options) { o.External = []string{"10.8.0.0"} }, "--external-cidr"},
		"no streams":                       {func(o *Options) { o.Limits.Streams = 0 }, "--streams-per-caller"},
	} {
		t.Run(name, func(t *testing.T) {
			o := DefaultOptions()
			o.CertFile, o.KeyFile = "gateway.crt", "gateway.key"
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

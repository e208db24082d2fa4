package app

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// TestTenantLimits: what the flags mean, and which make no sense.
func TestTenantLimits(t *testing.T) {
	const mebi = 1 << 20
	for name, c := range map[string]struct {
		flags []string
		want  quota.Limits
		err   string // part of it; empty for none
	}{
		"defaults":        {nil, quota.Limits{Bytes: 64 * mebi, Objects: 20_000, WriteBytesPerSecond: 2 * mebi}, ""},
		"others":          {[]string{"--tenant-storage=1Gi", "--tenant-objects=7", "--tenant-writes=1M"}, quota.Limits{Bytes: 1024 * mebi, Objects: 7, WriteBytesPerSecond: 1_000_000}, ""},
		"none":            {[]string{"--tenant-storage=0", "--tenant-objects=0", "--tenant-writes=0"}, quota.Limits{}, ""},
		"a negative size": {[]string{"--tenant-storage=-1"}, quota.Limits{}, "--tenant-storage is -1"},
		"minus one":       {[]string{"--tenant-objects=-1"}, quota.Limits{}, "--tenant-objects -1"},
		"a negative rate": {[]string{"--tenant-writes=-1Mi"}, quota.Limits{}, "--tenant-writes -1Mi"},
		"too slow":        {[]string{"--tenant-writes=1Ki"}, quota.Limits{}, "256Ki at least"},
		"just enough":     {[]string{"--tenant-writes=256Ki"}, quota.Limits{Bytes: 64 * mebi, Objects: 20_000, WriteBytesPerSecond: mebi / 4}, ""},
		"no quantity":     {[]string{"--tenant-storage=much"}, quota.Limits{}, "quantities must match"},
	} {
		t.Run(name, func(t *testing.T) {
			limits := defaultTenantLimits()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			limits.addFlags(flags)
			err := flags.Parse(c.flags)
			if err == nil {
				err = limits.validate()
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if got := limits.limits(); err == nil && got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

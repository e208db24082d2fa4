package provisioner

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

// TestTenantLimits: what the flags mean, and which make no sense.
func TestTenantLimits(t *testing.T) {
	const mebi = 1 << 20
	requests := inflight.Limits{Reads: 100, Writes: 50, Watches: 1000}
	stored := func(bytes, objects, writeBytes int64) hosted.Limits {
		return hosted.Limits{
			Stored:   quota.Limits{Bytes: bytes, Objects: objects, WritesPerSecond: 1000, WriteBytesPerSecond: writeBytes},
			Requests: requests, Expressions: 4000,
		}
	}
	for name, c := range map[string]struct {
		flags []string
		want  hosted.Limits
		err   string // part of it; empty for none
	}{
		"defaults": {nil, stored(64*mebi, 20_000, 2*mebi), ""},
		"others":   {[]string{"--tenant-storage=1Gi", "--tenant-objects=7", "--tenant-writes=1M"}, stored(1024*mebi, 7, 1_000_000), ""},
		"none": {[]string{
			"--tenant-storage=0", "--tenant-objects=0", "--tenant-writes=0", "--tenant-writes-per-second=0", "--tenant-expressions=0",
			"--tenant-concurrent-reads=0", "--tenant-concurrent-writes=0", "--tenant-concurrent-watches=0",
		}, hosted.Limits{}, ""},
		"requests": {[]string{
			"--tenant-writes-per-second=5", "--tenant-expressions=6", "--tenant-concurrent-reads=1", "--tenant-concurrent-writes=2", "--tenant-concurrent-watches=3",
		}, hosted.Limits{
			Stored:   quota.Limits{Bytes: 64 * mebi, Objects: 20_000, WritesPerSecond: 5, WriteBytesPerSecond: 2 * mebi},
			Requests: inflight.Limits{Reads: 1, Writes: 2, Watches: 3}, Expressions: 6,
		}, ""},
		"less than no expressions": {[]string{"--tenant-expressions=-1"}, hosted.Limits{}, "--tenant-expressions is -1"},
		"negative writes":          {[]string{"--tenant-writes-per-second=-1"}, hosted.Limits{}, "--tenant-writes-per-second is -1"},
		"negative reads":           {[]string{"--tenant-concurrent-reads=-1"}, hosted.Limits{}, "--tenant-concurrent-reads is -1"},
		"a negative size":          {[]string{"--tenant-storage=-1"}, hosted.Limits{}, "--tenant-storage is -1"},
		"minus one":                {[]string{"--tenant-objects=-1"}, hosted.Limits{}, "--tenant-objects -1"},
		"a negative rate":          {[]string{"--tenant-writes=-1Mi"}, hosted.Limits{}, "--tenant-writes -1Mi"},
		"too slow":                 {[]string{"--tenant-writes=1Ki"}, hosted.Limits{}, "256Ki at least"},
		"just enough":              {[]string{"--tenant-writes=256Ki"}, stored(64*mebi, 20_000, mebi/4), ""},
		"no quantity":              {[]string{"--tenant-storage=much"}, hosted.Limits{}, "quantities must match"},
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

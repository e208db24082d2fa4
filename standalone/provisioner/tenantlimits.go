package provisioner

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/inflight"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

const (
	defaultStorage = "64Mi"
	defaultObjects = 20_000
	defaultWrites  = "2Mi"

	defaultExpressions       = 4000
	defaultWritesPerSecond   = 1000
	defaultConcurrentReads   = 100
	defaultConcurrentWrites  = 50
	defaultConcurrentWatches = 1000
)

// TenantLimits are the limits of the control planes of tenants whose
// spec.controlPlane.limits does not have others.
type TenantLimits struct {
	// Storage is how many bytes it stores, Objects how many objects of all
	// kinds, Writes how many bytes it writes in a second.
	Storage, Writes resource.QuantityValue
	Objects         int64
	// WritesPerSecond is how often it writes in a second.
	WritesPerSecond int64
	// Expressions is how much work its expressions are, in those of the usual length.
	Expressions int64
	// Requests are those that it has in flight.
	Requests inflight.Limits
}

func defaultTenantLimits() TenantLimits {
	return TenantLimits{
		Storage: resource.QuantityValue{Quantity: resource.MustParse(defaultStorage)},
		Writes:  resource.QuantityValue{Quantity: resource.MustParse(defaultWrites)},
		Objects: defaultObjects, WritesPerSecond: defaultWritesPerSecond, Expressions: defaultExpressions,
		Requests: inflight.Limits{Reads: defaultConcurrentReads, Writes: defaultConcurrentWrites, Watches: defaultConcurrentWatches},
	}
}

func (l *TenantLimits) addFlags(flags *pflag.FlagSet) {
	flags.Var(&l.Storage, "tenant-storage", "how much each tenant's control plane stores at most; 0 is no limit")
	flags.Int64Var(&l.Objects, "tenant-objects", l.Objects,
		"how many objects of all kinds each tenant's control plane has at most; 0 is no limit")
	flags.Int64Var(&l.Expressions, "tenant-expressions", l.Expressions,
		"how many expressions of the usual length those that each tenant's control plane stores are as much work as, at most; 0 is no limit")
	flags.Var(&l.Writes, "tenant-writes", "how much each tenant's control plane writes in a second at most, except in bursts; 0 is no limit")
	flags.Int64Var(&l.WritesPerSecond, "tenant-writes-per-second", l.WritesPerSecond,
		"how often each tenant's control plane writes in a second at most, except in bursts; 0 is no limit")
	flags.IntVar(&l.Requests.Reads, "tenant-concurrent-reads", l.Requests.Reads,
		"how many gets and lists of each tenant are served at a time; 0 is no limit")
	flags.IntVar(&l.Requests.Writes, "tenant-concurrent-writes", l.Requests.Writes,
		"how many requests of each tenant that write are served at a time; 0 is no limit")
	flags.IntVar(&l.Requests.Watches, "tenant-concurrent-watches", l.Requests.Watches,
		"how many watches, logs and other long-running requests of each tenant are served at a time; 0 is no limit")
}

func (l *TenantLimits) validate() error {
	const request = 2 << 20 // what etcd takes at a time, and more
	switch {
	case l.Storage.Sign() < 0 || l.Objects < 0 || l.Writes.Sign() < 0:
		return fmt.Errorf("--tenant-storage is %s, --tenant-objects %d, --tenant-writes %s: none may be negative",
			&l.Storage, l.Objects, &l.Writes)
	case l.Expressions < 0:
		return fmt.Errorf("--tenant-expressions is %d: it must not be negative", l.Expressions)
	case l.WritesPerSecond < 0:
		return fmt.Errorf("--tenant-writes-per-second is %d: it must not be negative", l.WritesPerSecond)
	case l.Requests.Reads < 0 || l.Requests.Writes < 0 || l.Requests.Watches < 0:
		return fmt.Errorf("--tenant-concurrent-reads is %d, --tenant-concurrent-writes %d, --tenant-concurrent-watches %d: none may be negative",
			l.Requests.Reads, l.Requests.Writes, l.Requests.Watches)
	case l.Writes.Sign() > 0 && l.Writes.Value()*quota.WriteBurst < request:
		return fmt.Errorf("--tenant-writes is %s: it must be 256Ki at least, so that an object of the largest size can be written", &l.Writes)
	}
	return nil
}

func (l *TenantLimits) limits() hosted.Limits {
	return hosted.Limits{
		Stored: quota.Limits{
			Bytes: l.Storage.Value(), Objects: l.Objects, WritesPerSecond: l.WritesPerSecond, WriteBytesPerSecond: l.Writes.Value(),
		},
		Requests: l.Requests, Expressions: l.Expressions,
	}
}

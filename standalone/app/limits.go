package app

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/quota"
)

const (
	defaultStorage = "64Mi"
	defaultObjects = 20_000
	defaultWrites  = "2Mi"
)

// TenantLimits are the limits of each tenant's control plane.
type TenantLimits struct {
	// Storage is how many bytes it stores, Objects how many objects of all
	// kinds, Writes how many bytes it writes in a second.
	Storage, Writes resource.QuantityValue
	Objects         int64
}

func defaultTenantLimits() TenantLimits {
	return TenantLimits{
		Storage: resource.QuantityValue{Quantity: resource.MustParse(defaultStorage)},
		Writes:  resource.QuantityValue{Quantity: resource.MustParse(defaultWrites)},
		Objects: defaultObjects,
	}
}

func (l *TenantLimits) addFlags(flags *pflag.FlagSet) {
	flags.Var(&l.Storage, "tenant-storage", "how much each tenant's control plane stores at most; 0 is no limit")
	flags.Int64Var(&l.Objects, "tenant-objects", l.Objects,
		"how many objects of all kinds each tenant's control plane has at most; 0 is no limit")
	flags.Var(&l.Writes, "tenant-writes", "how much each tenant's control plane writes in a second at most, except in bursts; 0 is no limit")
}

func (l *TenantLimits) validate() error {
	const request = 2 << 20 // what etcd takes at a time, and more
	switch {
	case l.Storage.Sign() < 0 || l.Objects < 0 || l.Writes.Sign() < 0:
		return fmt.Errorf("--tenant-storage is %s, --tenant-objects %d, --tenant-writes %s: none may be negative",
			&l.Storage, l.Objects, &l.Writes)
	case l.Writes.Sign() > 0 && l.Writes.Value()*quota.WriteBurst < request:
		return fmt.Errorf("--tenant-writes is %s: it must be 256Ki at least, so that an object of the largest size can be written", &l.Writes)
	}
	return nil
}

func (l *TenantLimits) limits() quota.Limits {
	return quota.Limits{Bytes: l.Storage.Value(), Objects: l.Objects, WriteBytesPerSecond: l.Writes.Value()}
}

package bench

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/app"
)

const (
	// slowID is the ID of a validator that takes its time, slowTime is how much.
	slowID, slowTime = "slow", 10 * time.Millisecond
	// slowCommand is the command of vc-bench that is a syncer with this validator, and slowTenant the flag that names the tenant.
	slowCommand, slowTenant = "slow-syncer", "slow-tenant"
)

// slow is a validator that takes its time for the pods of one tenant.
type slow struct {
	plugins.TenantLocks

	tenant string
}

// newSlowSyncer makes the command of a syncer with a slow validator.
func newSlowSyncer() *cobra.Command {
	v := &slow{}
	command := app.NewCommand(plugins.Registration{ID: slowID, InitFn: func(plugins.Environment) (plugins.Validator, error) { return v, nil }})
	command.Use, command.Hidden = slowCommand, true
	command.Flags().StringVar(&v.tenant, slowTenant, "", "cluster key of the tenant")
	return command
}

// Name is what messages call it.
func (*slow) Name() string { return slowID }

// Kinds are those that it watches.
func (*slow) Kinds() []schema.GroupKind { return []schema.GroupKind{{Kind: "Pod"}} }

// Locker is the lock of a tenant.
func (s *slow) Locker(tenant string) plugins.Locker { return s.Of(tenant) }

// Validate takes its time.
func (s *slow) Validate(ctx context.Context, r plugins.Request) error {
	if r.Tenant.Key != s.tenant {
		return nil
	}
	select {
	case <-time.After(slowTime):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

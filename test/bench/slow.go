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
	// slowID is the ID of a slow validator, slowTime the time that it takes.
	slowID, slowTime = "slow", 10 * time.Millisecond
	// slowCommand is the subcommand of vc-bench that runs a syncer with this
	// validator, and slowTenant the flag with the tenant.
	slowCommand, slowTenant = "slow-syncer", "slow-tenant"
)

// slow is a validator that is slow for the pods of one tenant.
type slow struct {
	plugins.TenantLocks

	tenant string
}

// newSlowSyncer returns the command of a syncer with the slow validator.
func newSlowSyncer() *cobra.Command {
	v := &slow{}
	command := app.NewCommand(plugins.Registration{ID: slowID, InitFn: func(plugins.Environment) (plugins.Validator, error) { return v, nil }})
	command.Use, command.Hidden = slowCommand, true
	command.Flags().StringVar(&v.tenant, slowTenant, "", "cluster key of the tenant")
	return command
}

// Name returns the name that messages use.
func (*slow) Name() string { return slowID }

// Kinds returns the validated kinds.
func (*slow) Kinds() []schema.GroupKind { return []schema.GroupKind{{Kind: "Pod"}} }

// Locker returns the lock of a tenant.
func (s *slow) Locker(tenant string) plugins.Locker { return s.Of(tenant) }

// Validate sleeps for the pods of the tenant.
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

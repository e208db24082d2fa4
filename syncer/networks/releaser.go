package networks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pause"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// releasePoll is how often records are read of tenants that are being deleted.
const releasePoll = 5 * time.Second

// Releaser deletes what providers have of the networks of deleted tenants. Their
// root namespaces stay until then, because of the finalizer of the records.
type Releaser struct {
	Providers *Providers
	// Reader reads the super cluster without a cache, and Client writes to it.
	Reader client.Reader
	Client client.Client
	// Interval is the longest pause between two calls about a network.
	Interval time.Duration
	Logger   logr.Logger

	// leaving has the networks of the deleted tenants by the UID of the Secret.
	leaving map[types.UID]*provisions
}

// Start releases networks until ctx ends.
func (r *Releaser) Start(ctx context.Context) error {
	r.leaving = map[types.UID]*provisions{}
	for pause.For(ctx, releasePoll) {
		if err := r.release(ctx); err != nil && ctx.Err() == nil {
			r.Logger.Error(err, "Networks of deleted tenants could not be released")
		}
	}
	return nil
}

// release asks the providers of all networks of deleted tenants to delete them.
func (r *Releaser) release(ctx context.Context) error {
	found := &corev1.SecretList{}
	if err := r.Reader.List(ctx, found, client.MatchingLabels{names.Networks: session.True}); err != nil {
		return fmt.Errorf("list the records of networks: %w", err)
	}
	leaving := map[types.UID]*provisions{}
	var failed []error
	for i := range found.Items {
		secret := &found.Items[i]
		if !isRecordOfDeleted(secret) {
			continue
		}
		s := r.leaving[secret.UID]
		if s == nil {
			s = &provisions{
				providers: r.Providers, tenant: tenantOf(secret), interval: r.Interval, wake: func() {}, calls: map[string]*call{},
			}
		}
		leaving[secret.UID] = s
		s.vault = &leftVault{r.Client, secret}
		failed = append(failed, r.releaseTenant(ctx, s, secret))
	}
	r.leaving = leaving
	return errors.Join(failed...)
}

// isRecordOfDeleted reports whether a Secret has the records of a tenant that is
// being deleted. The copy of a tenant's Secret never has.
func isRecordOfDeleted(secret *corev1.Secret) bool {
	return secret.Name == names.NetworksSecret && secret.DeletionTimestamp != nil && plugins.TenantOf(secret) == ""
}

// tenantOf returns the tenant of records.
func tenantOf(secret *corev1.Secret) plugins.Tenant {
	notes := secret.Annotations
	return plugins.Tenant{
		Key: secret.Namespace, Name: notes[names.VCName], Namespace: notes[names.VCNamespace], UID: types.UID(notes[names.VCUID]),
	}
}

// releaseTenant asks the providers of the networks of one tenant, if it has no
// pods.
func (r *Releaser) releaseTenant(ctx context.Context, s *provisions, secret *corev1.Secret) error {
	pods := &corev1.PodList{}
	ofTenant := client.MatchingLabels{names.VCName: s.tenant.Name, names.VCNamespace: s.tenant.Namespace, names.Cluster: s.tenant.Key}
	if err := r.Client.List(ctx, pods, ofTenant); err != nil || len(pods.Items) > 0 {
		return err
	}
	var err error
	if s.records, err = parseRecords(secret); err != nil {
		return err
	}
	for name := range s.records {
		s.remove(ctx, name)
	}
	s.await(ctx)
	return s.forget(ctx, func(string) bool { return false })
}

// leftVault keeps the records of a deleted tenant in their Secret.
type leftVault struct {
	client client.Client
	secret *corev1.Secret
}

func (v *leftVault) read(context.Context) (records, error) { return parseRecords(v.secret) }

func (v *leftVault) write(ctx context.Context, all records) error {
	was := v.secret.DeepCopy()
	if err := all.store(v.secret); err != nil {
		return err
	}
	if err := v.client.Patch(ctx, v.secret, client.MergeFrom(was)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the records of networks of tenant %s: %w", v.secret.Namespace, err)
	}
	return nil
}

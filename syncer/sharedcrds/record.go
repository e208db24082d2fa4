package sharedcrds

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// record says which CRD of the tenant is a copy, and how far it has got. It is
// in the super cluster, where the tenant cannot change it.
type record struct {
	Phase phase `json:"phase"`
	// UID is that of the tenant's CRD; empty until it is known.
	UID types.UID `json:"uid,omitempty"`
	// Mark is the value of the label of the copy. It identifies a copy whose UID
	// has not been recorded.
	Mark string `json:"mark"`
	// Generation is that of the tenant's CRD when the phase was entered.
	Generation int64 `json:"generation,omitempty"`
	// After is the token of the page of objects that is rewritten next; empty for
	// the first.
	After string `json:"after,omitempty"`
}

// phase says how far a copy has got.
type phase string

// Phases of a copy.
const (
	// creating: the copy may exist, and its UID is not recorded yet.
	creating phase = "Creating"
	// copied: the tenant has the copy.
	copied phase = "Copied"
	// closing: the copy is recalled. None of its objects can be created or
	// changed.
	closing phase = "Closing"
	// closed: the same, and that was written.
	closed phase = "Closed"
	// left: the copy is recalled, and not served any more, since it has objects.
	left phase = "Left"
	// keeping: the tenant's own CRD is about to be replaced.
	keeping phase = "Keeping"
	// replaced: the copy has replaced the tenant's own CRD.
	replaced phase = "Replaced"
	// restoring: the tenant's own versions are served again, with all fields of
	// all objects.
	restoring phase = "Restoring"
	// rewriting: the same, and that was written. Every object is rewritten in the
	// tenant's own version.
	rewriting phase = "Rewriting"
	// finishing: the tenant's own CRD is about to be as it was.
	finishing phase = "Finishing"
)

// hasOwn reports whether the tenant's own CRD is in the place of the copy, or
// kept.
func (r *record) hasOwn() bool {
	if r == nil {
		return false
	}
	switch r.Phase {
	case keeping, replaced, restoring, rewriting, finishing:
		return true
	case creating, copied, closing, closed, left:
	}
	return false
}

// records are those of a tenant by the names of CRDs.
type records map[string]*record

const (
	// recordsKey is the key of the records in their Secret.
	recordsKey = "crds"
	// specKey is the key of a compressed spec in its Secret.
	specKey = "spec"
	// maxKept is the maximum size of a compressed spec. A Secret has 1 MiB.
	maxKept = 900 << 10
)

// errTooLarge is returned for a CRD that does not fit into a Secret.
var errTooLarge = errors.New("it is too large to be kept aside")

// vault keeps what is recorded of one tenant, in Secrets of its root namespace.
type vault struct {
	reader    client.Reader
	guard     *guard.Guard
	kind      *kinds.Kind // of Secrets
	namespace string
}

// records returns those of the tenant.
func (v *vault) records(ctx context.Context) (records, error) {
	found := &corev1.Secret{}
	err := v.reader.Get(ctx, client.ObjectKey{Namespace: v.namespace, Name: names.SharedCRDsSecret}, found)
	all := records{}
	if apierrors.IsNotFound(err) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(found.Data[recordsKey], &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read the records of shared CRDs: %w", err)
	}
	return all, nil
}

// write writes the records.
func (v *vault) write(ctx context.Context, all records) error {
	content, err := json.Marshal(all)
	if err == nil {
		err = v.put(ctx, names.SharedCRDsSecret, recordsKey, content)
	}
	if err != nil {
		return fmt.Errorf("write the records of shared CRDs: %w", err)
	}
	return nil
}

// keep keeps the spec of a CRD of the tenant's own.
func (v *vault) keep(ctx context.Context, name string, own *spec) error {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if err := errors.Join(json.NewEncoder(w).Encode(own), w.Close()); err != nil {
		return fmt.Errorf("compress CustomResourceDefinition %s: %w", name, err)
	}
	if compressed.Len() > maxKept {
		return errTooLarge
	}
	if err := v.put(ctx, names.OwnCRDSecret(name), specKey, compressed.Bytes()); err != nil {
		return fmt.Errorf("keep CustomResourceDefinition %s aside: %w", name, err)
	}
	return nil
}

// kept returns the spec that keep has kept.
func (v *vault) kept(ctx context.Context, name string) (*spec, error) {
	found, own := &corev1.Secret{}, &spec{}
	err := v.reader.Get(ctx, client.ObjectKey{Namespace: v.namespace, Name: names.OwnCRDSecret(name)}, found)
	var r io.Reader
	if err == nil {
		r, err = gzip.NewReader(bytes.NewReader(found.Data[specKey]))
	}
	if err == nil {
		err = json.NewDecoder(r).Decode(own)
	}
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s that was kept aside: %w", name, err)
	}
	return own, nil
}

// drop deletes the spec that keep has kept.
func (v *vault) drop(ctx context.Context, name string) error {
	found := &corev1.Secret{}
	if err := v.reader.Get(ctx, client.ObjectKey{Namespace: v.namespace, Name: names.OwnCRDSecret(name)}, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(v.guard.Delete(ctx, v.kind, found, nil))
}

// put writes the one value of a Secret.
func (v *vault) put(ctx context.Context, name, key string, value []byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: name}}
	err := v.reader.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		secret.Data = map[string][]byte{key: value}
		return v.guard.CreateOwn(ctx, v.kind, secret)
	}
	if err != nil || bytes.Equal(secret.Data[key], value) {
		return err
	}
	was := secret.DeepCopy()
	secret.Data = map[string][]byte{key: value}
	return v.guard.PatchOwn(ctx, v.kind, secret, was)
}

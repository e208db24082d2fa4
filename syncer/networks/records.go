package networks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

// record says that a network was handed to its provider, which may have
// something of it until Delete says otherwise. It is in the super cluster, where
// the tenant cannot change it.
type record struct {
	UID   types.UID `json:"uid"`
	Type  string    `json:"type"`
	VPCID string    `json:"vpcID,omitempty"`
}

// recordOf returns the record of a network.
func recordOf(n *networkv1.Network) record {
	return record{UID: n.UID, Type: n.Spec.Type, VPCID: n.Spec.VPCID}
}

// network returns the recorded network of a tenant.
func (r record) network(tenant plugins.Tenant, name string) network.Network {
	return network.Network{Tenant: tenant, Name: name, UID: r.UID, Spec: networkv1.NetworkSpec{Type: r.Type, VPCID: r.VPCID}}
}

// podRecord is the network of a copy that its provider prepares.
type podRecord struct {
	record

	// Tenant is the UID of the VirtualCluster.
	Tenant types.UID `json:"tenant"`
}

// records are those of a tenant by the names of networks.
type records map[string]record

// parseRecords returns the records in a Secret.
func parseRecords(secret *corev1.Secret) (records, error) {
	all := make(records, len(secret.Data))
	for name, data := range secret.Data {
		r := record{}
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, fmt.Errorf("read the record of network %s in Secret %s/%s: %w", name, secret.Namespace, secret.Name, err)
		}
		all[name] = r
	}
	return all, nil
}

// store sets the records of a Secret, which cannot be deleted while it has any.
func (r records) store(secret *corev1.Secret) error {
	secret.Data = make(map[string][]byte, len(r))
	for name, one := range r {
		data, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("record network %s: %w", name, err)
		}
		secret.Data[name] = data
	}
	secret.Finalizers = slices.DeleteFunc(slices.Clone(secret.Finalizers), func(f string) bool { return f == networkv1.Finalizer })
	if len(r) > 0 {
		secret.Finalizers = append(secret.Finalizers, networkv1.Finalizer)
	}
	return nil
}

// Vault keeps the records of a tenant, in a Secret of its root namespace.
type Vault struct {
	Reader client.Reader
	Guard  *guard.Guard
	Kind   *kinds.Kind // of Secrets
	Tenant plugins.Tenant
}

// read returns the records.
func (v *Vault) read(ctx context.Context) (records, error) {
	found := &corev1.Secret{}
	err := v.Reader.Get(ctx, client.ObjectKey{Namespace: v.Tenant.Key, Name: names.NetworksSecret}, found)
	switch {
	case apierrors.IsNotFound(err):
		return records{}, nil
	case err != nil:
		return nil, fmt.Errorf("read the records of networks: %w", err)
	}
	return parseRecords(found)
}

// write writes the records.
func (v *Vault) write(ctx context.Context, all records) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.Tenant.Key, Name: names.NetworksSecret}}
	err := v.Reader.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	was := secret.DeepCopy()
	exists := err == nil
	if client.IgnoreNotFound(err) == nil {
		err = all.store(secret)
	}
	secret.Labels = labels.Merge(secret.Labels, labels.Set{names.Networks: session.True})
	secret.Annotations = labels.Merge(secret.Annotations, labels.Set{
		names.VCName: v.Tenant.Name, names.VCNamespace: v.Tenant.Namespace, names.VCUID: string(v.Tenant.UID),
	})
	switch {
	case err != nil:
	case exists:
		err = v.Guard.PatchOwn(ctx, v.Kind, secret, was)
	default:
		err = v.Guard.CreateOwn(ctx, v.Kind, secret)
	}
	if err != nil {
		return fmt.Errorf("write the records of networks: %w", err)
	}
	return nil
}

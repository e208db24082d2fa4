// Package secrets keeps Secrets whose data a program makes and renews.
package secrets

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keeper keeps Secrets. The program needs the verbs create, get, patch and
// update for their names.
type Keeper struct {
	Client client.Client
	// Live reads from the apiserver.
	Live client.Reader
	// Owner is the name of the program.
	Owner string
}

// Ensure makes the data of a Secret what renew makes of it, and returns that. It
// creates the Secret if it does not exist. If another replica writes the Secret
// meanwhile, the error is a conflict.
func (k Keeper) Ensure(
	ctx context.Context, name types.NamespacedName, renew func(map[string][]byte) (map[string][]byte, error),
) (map[string][]byte, error) {
	var renewed map[string][]byte
	err := k.Change(ctx, name, func(secret *corev1.Secret) (err error) {
		renewed, err = renew(secret.Data)
		secret.Data = renewed
		return err
	})
	return renewed, err
}

// Change is Ensure for a function that changes the whole Secret.
func (k Keeper) Change(ctx context.Context, name types.NamespacedName, change func(*corev1.Secret) error) error {
	secret, err := k.get(ctx, name)
	if err != nil {
		return err
	}
	before := secret.DeepCopy()
	if err := change(secret); err != nil {
		return fmt.Errorf("renew Secret %s: %w", name, err)
	}
	if equality.Semantic.DeepEqual(before, secret) {
		return nil
	}
	if err := k.Client.Update(ctx, secret, client.FieldOwner(k.Owner)); err != nil {
		return fmt.Errorf("update Secret %s: %w", name, WithoutData(err))
	}
	return nil
}

// get reads a Secret and creates it if it does not exist. It is applied without
// data, so that replicas that start at once do not overwrite each other, and
// because the permission to create can be limited to a name only for apply.
func (k Keeper) get(ctx context.Context, name types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := k.Live.Get(ctx, name, secret)
	if err == nil {
		return secret, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	empty := corev1ac.Secret(name.Name, name.Namespace).WithType(corev1.SecretTypeOpaque).
		WithLabels(map[string]string{"app.kubernetes.io/managed-by": k.Owner})
	if err := k.Client.Apply(ctx, empty, client.FieldOwner(k.Owner), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("create Secret %s: %w", name, err)
	}
	if err := k.Live.Get(ctx, name, secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	return secret, nil
}

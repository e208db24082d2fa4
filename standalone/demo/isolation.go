package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// apart makes sure that two tenants do not see each other, nor may, and tells
// what each sees.
func apart(ctx context.Context, admin *Admin, one, other *Tenant, tell func(string)) error {
	for _, t := range []*Tenant{one, other} {
		seen, err := sight(ctx, t)
		if err != nil {
			return err
		}
		tell(seen)
	}
	if err := noSharedPods(ctx, one, other); err != nil {
		return err
	}
	for _, at := range []struct {
		name   string
		config *rest.Config
	}{{other.Name, other.config}, {"the super cluster", admin.config}} {
		if err := refused(ctx, one, at.name, at.config); err != nil {
			return err
		}
		tell(fmt.Sprintf("%s's credentials are refused by %s's apiserver", one.Name, at.name))
	}
	return nil
}

// sight is what a tenant sees, in a line.
func sight(ctx context.Context, t *Tenant) (string, error) {
	namespaces := &corev1.NamespaceList{}
	if err := t.client.List(ctx, namespaces); err != nil {
		return "", fmt.Errorf("%s: list namespaces: %w", t.Name, err)
	}
	pods, err := t.pods(ctx)
	if err != nil {
		return "", err
	}
	all := namesOf(namespaces.Items)
	slices.Sort(all)
	return fmt.Sprintf("%s sees the namespaces %s; %d pods", t.Name, strings.Join(all, ", "), len(pods)), nil
}

// noSharedPods makes sure that no pod is in both tenants' sight.
func noSharedPods(ctx context.Context, one, other *Tenant) error {
	ones, err := one.pods(ctx)
	if err != nil {
		return err
	}
	others, err := other.pods(ctx)
	if err != nil {
		return err
	}
	for i := range ones {
		if slices.ContainsFunc(others, func(p corev1.Pod) bool { return p.UID == ones[i].UID || p.Name == ones[i].Name }) {
			return fmt.Errorf("%s and %s both see the pod %s", one.Name, other.Name, ones[i].Name)
		}
	}
	return nil
}

// refused makes sure that an apiserver does not take a tenant's credentials.
func refused(ctx context.Context, t *Tenant, where string, server *rest.Config) error {
	config := rest.CopyConfig(server)
	config.CertData, config.KeyData = t.config.CertData, t.config.KeyData
	c, err := newClient(config)
	if err == nil {
		err = c.List(ctx, &corev1.PodList{})
	}
	switch {
	case err == nil:
		return fmt.Errorf("%s takes the credentials of %s", where, t.Name)
	case !apierrors.IsUnauthorized(err):
		return fmt.Errorf("try the credentials of %s at %s: %w", t.Name, where, err)
	}
	return nil
}

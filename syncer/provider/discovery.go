package provider

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/syncer/requests"
)

// discoverTimeout is the time limit for all requests of a discovery, one for each
// version of an apiserver without aggregated discovery.
const discoverTimeout = 30 * time.Second

// discover reads which of the built-in kinds the tenant's apiserver serves: an
// older or smaller apiserver may not serve all kinds that the syncer syncs, and
// a watch of a missing kind would never begin.
func (c *Cluster) discover(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, discoverTimeout)
	defer cancel()
	client, err := c.discoverer(ctx)
	if err != nil {
		return fmt.Errorf("create the discovery client: %w", err)
	}
	groups, lists, failed, err := client.GroupsAndMaybeResources()
	if err != nil {
		return err
	}
	if err := c.unlessOthers(failed); err != nil {
		return err
	}
	if lists == nil {
		lists = map[schema.GroupVersion]*metav1.APIResourceList{}
	}
	// Without aggregated discovery, only the built-in versions are read,
	// however many others the apiserver has.
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if err := c.discoverVersion(client, version.GroupVersion, lists); err != nil {
				return err
			}
		}
	}
	served := map[schema.GroupVersionKind]bool{}
	for version, list := range lists {
		for i := range list.APIResources {
			if gvk := version.WithKind(list.APIResources[i].Kind); c.scheme.Recognizes(gvk) {
				served[gvk] = true
			}
		}
	}
	c.served = c.known.intern(served)
	return nil
}

// discoverer returns a discovery client whose requests fail when ctx is done.
// Discovery clients take no context, and a timeout only from their HTTP client.
func (c *Cluster) discoverer(ctx context.Context) (*discovery.DiscoveryClient, error) {
	limited := *c.http
	limited.Timeout = probeTimeout
	limited.Transport = requests.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return c.http.Transport.RoundTrip(r)
	})
	return discovery.NewDiscoveryClientForConfigAndClient(rest.CopyConfig(c.config), &limited)
}

// servedKinds keeps the kinds that apiservers serve once for all tenants with the
// same ones, which is most of them.
type servedKinds struct {
	last atomic.Pointer[map[schema.GroupVersionKind]bool]
}

// intern returns the last kinds that were discovered, if they are equal.
func (s *servedKinds) intern(served map[schema.GroupVersionKind]bool) map[schema.GroupVersionKind]bool {
	if last := s.last.Load(); last != nil && maps.Equal(*last, served) {
		return *last
	}
	s.last.Store(&served)
	return served
}

// discoverVersion discovers the kinds of a built-in version that is not known
// yet. A version that is not found has none.
func (c *Cluster) discoverVersion(
	client *discovery.DiscoveryClient, name string, known map[schema.GroupVersion]*metav1.APIResourceList,
) error {
	version, err := schema.ParseGroupVersion(name)
	if err != nil {
		return nil //nolint:nilerr // no built-in version has such a name
	}
	if !c.scheme.IsVersionRegistered(version) || known[version] != nil {
		return nil
	}
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("discover the resources of %s: %w", version, err)
	}
	if list == nil {
		list = &metav1.APIResourceList{}
	}
	known[version] = list
	return nil
}

// unlessOthers returns an error if a built-in version has failed. Others may be
// served by the tenant's own aggregated apiservers, which may be down.
func (c *Cluster) unlessOthers(failed map[schema.GroupVersion]error) error {
	for version := range failed {
		if c.scheme.IsVersionRegistered(version) {
			return &discovery.ErrGroupDiscoveryFailed{Groups: failed}
		}
	}
	return nil
}

package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/gatewayaccess"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

// manyTenants measures the memory of a gateway with many tenants, and the time
// until it routes to another one. They are VirtualClusters without a control
// plane, since the machine could not run as many: the gateway has all of them that
// it needs, and responds that they are down.
func (w *world) manyTenants(ctx context.Context, s *report.Scenario) (err error) {
	w.progress.sayf("creating %d VirtualClusters", w.opts.GatewayTenants)
	users := make([]tls.Certificate, w.opts.GatewayTenants)
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(2 * starting)
	for i := range users {
		group.Go(func() (err error) {
			users[i], err = w.routedTenant(limited, fmt.Sprintf("routed-%04d", i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	g, err := w.startGateway(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	for _, user := range users { // until it has read all
		if _, err := g.untilRouted(ctx, user); err != nil {
			return err
		}
	}
	for run := range w.opts.Runs {
		user, err := w.routedTenant(ctx, fmt.Sprintf("last-%d", run))
		if err != nil {
			return err
		}
		took, err := g.untilRouted(ctx, user)
		if err != nil {
			return err
		}
		s.Add("time to route to a tenant that was just made", "ms", measure.Milliseconds(took), 1).Want("≤ 1000")
		usage, err := g.usage()
		if err != nil {
			return err
		}
		s.Add("resident memory of the gateway with all tenants", "MiB", float64(usage.Resident)/measure.MiB, w.opts.GatewayTenants).Want("≤ 100")
	}
	return nil
}

// routedTenant creates a VirtualCluster, and what the gateway needs of a control
// plane. It returns a user of that.
func (w *world) routedTenant(ctx context.Context, name string) (tls.Certificate, error) {
	vc := virtualCluster(name)
	vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
	vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: "none"}
	if err := w.super.Client.Create(ctx, vc); err != nil {
		return tls.Certificate{}, fmt.Errorf("create the VirtualCluster: %w", err)
	}
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		err := w.super.Client.Get(ctx, client.ObjectKeyFromObject(vc), vc)
		return vc.Status.ClusterNamespace != "", err
	})
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("wait for the root namespace of %s: %w", name, err)
	}
	access, user, err := accessOf()
	if err != nil {
		return tls.Certificate{}, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: vc.Status.ClusterNamespace, Name: names.GatewaySecret, Labels: names.OwnerLabels(vc), Annotations: names.OwnerAnnotations(vc),
	}, Data: access.Data()}
	if err := w.super.Client.Create(ctx, secret); err != nil {
		return tls.Certificate{}, fmt.Errorf("write what the gateway needs: %w", err)
	}
	return user, nil
}

// accessOf returns what a gateway needs of a control plane, and a user.
func accessOf() (gatewayaccess.Access, tls.Certificate, error) {
	now := time.Now()
	authority, err := pki.NewAuthority("kubernetes", time.Hour, now)
	if err != nil {
		return gatewayaccess.Access{}, tls.Certificate{}, err
	}
	own, errOwn := authority.Client(gatewayaccess.User, nil, time.Hour, now)
	user, errUser := authority.Client("jane", nil, time.Hour, now)
	_, keys, errKeys := pki.NewSigningKey()
	if err := errors.Join(errOwn, errUser, errKeys); err != nil {
		return gatewayaccess.Access{}, tls.Certificate{}, err
	}
	certificate, err := tls.X509KeyPair(user.CertPEM, user.KeyPEM)
	return gatewayaccess.Access{
		Server: "https://127.0.0.1:1", CA: authority.CertPEM, ClientCA: authority.CertPEM, TokenKeys: keys,
		Certificate: own.CertPEM, Key: own.KeyPEM,
	}, certificate, err
}

// untilRouted returns the time until the gateway recognizes a user.
func (g *gateway) untilRouted(ctx context.Context, user tls.Certificate) (time.Duration, error) {
	began := time.Now()
	w := &way{name: "a new tenant", server: "https://" + g.address, client: clientOf(&tls.Config{RootCAs: g.roots, Certificates: []tls.Certificate{user}})}
	defer w.client.CloseIdleConnections()
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server+gatewayObject, nil)
		if err != nil {
			return false, err
		}
		response, err := w.client.Do(r)
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusServiceUnavailable, response.Body.Close()
	})
	if err != nil {
		return 0, fmt.Errorf("wait until the gateway knows the tenant: %w", err)
	}
	return time.Since(began), nil
}

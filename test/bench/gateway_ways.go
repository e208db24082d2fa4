package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// gatewayObject is what the requests through the gateway get.
const gatewayObject = "/api/v1/namespaces/default/configmaps/" + mine

// way is one to the apiserver of a tenant, with a client that has a connection
// of its own.
type way struct {
	name, server, token string
	client              *http.Client
}

// credentials are those of the admin's certificate, or a token.
type credentials struct{ kind, token string }

// pair has the ways that are compared for one kind of credentials.
type pair struct {
	credentials

	direct, through *way
}

// pair returns the ways to a tenant.
func (g *gateway) pair(t *local.Tenant, with credentials) (pair, error) {
	config := t.Config
	if with.token != "" {
		config = rest.AnonymousClientConfig(config)
	}
	own, err := rest.TLSConfigFor(config)
	if err != nil {
		return pair{}, fmt.Errorf("read the TLS settings of the tenant's kubeconfig: %w", err)
	}
	through := own.Clone()
	through.RootCAs, through.ServerName = g.roots, ""
	return pair{
		credentials: with,
		direct:      &way{with.kind + " directly", t.Config.Host, with.token, clientOf(own)},
		through:     &way{with.kind + " through the gateway", "https://" + g.address + "/tenants/" + t.Key(), with.token, clientOf(through)},
	}, nil
}

func clientOf(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
}

// prepare creates an object of 4 KiB in a tenant, and returns a token that may
// read it.
func prepare(ctx context.Context, t *local.Tenant) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: mine}}
	for _, obj := range []client.Object{
		account,
		&corev1.ConfigMap{ObjectMeta: account.ObjectMeta, Data: map[string]string{"a": strings.Repeat("x", 4<<10)}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: mine},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		},
	} {
		if err := t.Client.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return "", fmt.Errorf("create what the requests get: %w", err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := t.Client.SubResource("token").Create(ctx, account, token); err != nil {
		return "", fmt.Errorf("request a token: %w", err)
	}
	return token.Status.Token, nil
}

// open sends a request, and returns the response if it is 200.
func (w *way) open(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.server+path, nil)
	if err != nil {
		return nil, err
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := w.client.Do(r)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("%s: status %d", w.name, response.StatusCode), response.Body.Close())
	}
	return response, err
}

// get gets the object.
func (w *way) get(ctx context.Context) error {
	response, err := w.open(ctx, gatewayObject)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// watch opens a watch, which ends with the context.
func (w *way) watch(ctx context.Context) error {
	response, err := w.open(ctx, "/api/v1/namespaces/default/configmaps?watch=1")
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = response.Body.Close() })
	// The first event shows that the watch is open.
	_, err = io.ReadFull(response.Body, make([]byte, 1))
	return err
}

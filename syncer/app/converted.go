package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	webhookadmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/servingcert"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/rules"
	"github.com/virtualcluster/virtualcluster/syncer/admission"
	"github.com/virtualcluster/virtualcluster/syncer/converted"
	"github.com/virtualcluster/virtualcluster/syncer/converted/stored"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// addConverted adds the NetworkPolicies of tenants without a control plane and,
// with a webhook, the election of the replica that serves it.
func addConverted(mgr manager.Manager, hook *convertedWebhook, serves func(types.NamespacedName) bool, opts Options) error {
	outside, err := opts.outside()
	if err != nil {
		return err
	}
	objects, err := converted.Objects(mgr)
	if err != nil {
		return err
	}
	if err := hook.elect(mgr, objects, opts); err != nil {
		return err
	}
	policies := &converted.Policies{Pods: outside.Pods, Serves: serves, Interval: opts.Patrol, Objects: objects}
	if err := policies.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("add the NetworkPolicies of converted tenants: %w", err)
	}
	return nil
}

// convertedWebhook validates the objects of tenants without a control plane.
type convertedWebhook struct {
	host        string
	port        int
	certificate *servingcert.Keeper
	address     netip.AddrPort // not valid if the Service selects the pod
	active      *admission.Active
	objects     cache.Cache
	// most is how much a tenant may store that has no limits of its own.
	most    stored.Amount
	metrics *stored.Metrics
}

// webhook returns the webhook; nil without one.
func (o *Options) webhook(metrics *stored.Metrics) (*convertedWebhook, error) {
	if o.ConvertedWebhook.Name == "" {
		return nil, nil
	}
	bind := o.ConvertedWebhookBindAddress
	host, port, err := net.SplitHostPort(bind)
	number, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil {
		return nil, fmt.Errorf("--converted-webhook-bind-address %q must be a host, which may be empty, and a port", bind)
	}
	w := &convertedWebhook{
		host: host, port: int(number), metrics: metrics, most: stored.Amount{Objects: o.ConvertedObjects, Bytes: o.ConvertedStorage.Value()},
	}
	if o.ConvertedWebhookAddress != "" {
		ip, err := netip.ParseAddr(o.ConvertedWebhookAddress)
		if err != nil {
			return nil, fmt.Errorf("--converted-webhook-pod-address: %w", err)
		}
		w.address = netip.AddrPortFrom(ip, uint16(number))
	}
	hosts := []string{o.ConvertedWebhook.Name + "." + o.ConvertedWebhook.Namespace + ".svc"}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		hosts = append(hosts, host)
	}
	w.certificate = &servingcert.Keeper{Secret: o.ConvertedWebhook, Hosts: servingcert.HostsOf(hosts...)}
	return w, nil
}

// server returns the server of the webhook; nil without one.
func (w *convertedWebhook) server() webhook.Server {
	if w == nil {
		return nil
	}
	return webhook.NewServer(webhook.Options{
		Host: w.host, Port: w.port,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = w.certificate.GetCertificate }},
	})
}

// elect adds the election of the replica that answers to the manager.
func (w *convertedWebhook) elect(mgr manager.Manager, objects cache.Cache, opts Options) (err error) {
	if w == nil {
		return nil
	}
	w.objects = objects
	w.active, err = admission.NewActive(mgr.GetConfig(), mgr.GetClient(), opts.ConvertedWebhook, w.address)
	if err != nil {
		return err
	}
	if err := mgr.Add(w.active); err != nil {
		return fmt.Errorf("add the election of the replica that validates objects of converted tenants: %w", err)
	}
	return nil
}

// view returns what validators read: with the webhook, the objects of converted
// tenants, too.
func (w *convertedWebhook) view(mgr manager.Manager) (cache.Cache, client.Client, error) {
	if w == nil {
		return mgr.GetCache(), mgr.GetClient(), nil
	}
	union := converted.NewUnion(mgr.GetCache(), w.objects, mgr.GetScheme(), converted.Kinds()...)
	reader, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), Cache: &client.CacheOptions{Reader: union},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for validators: %w", err)
	}
	return union, reader, nil
}

// limits returns the validator of the numbers of objects of tenants without a
// control plane. It follows all others: they are unlocked in the order in which
// they are called, so that each write is counted before the next one is limited.
func (w *convertedWebhook) limits(table []*kinds.Kind, opts Options) func(rules.Usage) []plugins.Registration {
	return func(usage rules.Usage) []plugins.Registration {
		if w == nil {
			return nil
		}
		return []plugins.Registration{admission.Limits(table, effectiveLimits(opts.Limits), usage)}
	}
}

// serves reports whether this replica validates the objects of a converted
// tenant of that cluster key.
func (w *convertedWebhook) serves(tenant string) bool {
	if w == nil {
		return false
	}
	initial := &corev1.Namespace{}
	return w.active.Now() && w.objects.Get(context.Background(), client.ObjectKey{
		Name: names.SuperNamespace(tenant, metav1.NamespaceDefault),
	}, initial, client.UnsafeDisableDeepCopy) == nil
}

// serve adds the webhook to the manager.
func (w *convertedWebhook) serve(mgr manager.Manager, gate *validation.Gate) error {
	registration := servingcert.NewRegistration(mgr, name)
	w.certificate.Publish, w.certificate.Watch = registration.Publish, registration.Object()
	if err := w.certificate.SetupWithManager(mgr, name); err != nil {
		return err
	}
	storage, err := w.storage(mgr)
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(admission.StoragePath, &webhookadmission.Webhook{Handler: storage})
	mgr.GetWebhookServer().Register(admission.Path, &webhookadmission.Webhook{Handler: &admission.Webhook{
		Gate: gate, Storage: storage, Scheme: mgr.GetScheme(), Namespaces: w.objects, Live: mgr.GetAPIReader(), Active: w.active.Now,
	}})
	return nil
}

// storage returns what limits what tenants store, and adds what counts that.
func (w *convertedWebhook) storage(mgr manager.Manager) (*admission.Storage, error) {
	counter, err := stored.New(mgr.GetConfig(), mgr.GetRESTMapper())
	if err != nil {
		return nil, err
	}
	counter.Active = w.active.Now
	if err := mgr.Add(counter); err != nil {
		return nil, fmt.Errorf("add what counts the objects of converted tenants: %w", err)
	}
	reporter := &stored.Reporter{Client: mgr.GetClient(), Counter: counter, Most: w.most, Active: w.active.Now, Metrics: w.metrics}
	if err := mgr.Add(reporter); err != nil {
		return nil, fmt.Errorf("add the reports of what converted tenants store: %w", err)
	}
	return &admission.Storage{
		Usage: counter, Active: w.active.Now,
		Limits: admission.StorageLimits{Namespaces: w.objects, VirtualClusters: mgr.GetClient(), Most: w.most}.Of,
	}, nil
}

package local

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Tenant is a tenant that is ready, with the client of its admin.
type Tenant struct {
	// Client and Config have the permissions of the tenant's admin.
	Client client.WithWatch
	Config *rest.Config
	// VC is the VirtualCluster when it became ready.
	VC *tenancyv1alpha1.VirtualCluster
}

// Key returns the tenant's cluster key.
func (t *Tenant) Key() string { return t.VC.Status.ClusterNamespace }

// Super returns the super cluster's name for one of the tenant's namespaces.
func (t *Tenant) Super(namespace string) string { return names.SuperNamespace(t.Key(), namespace) }

// ChooseDNS sets the annotation by which the tenant chooses its DNS; empty for
// the default of the installation.
func (t *Tenant) ChooseDNS(ctx context.Context, choice string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(ns), ns); err != nil {
		return fmt.Errorf("get namespace %s: %w", ns.Name, err)
	}
	was := ns.DeepCopy()
	metav1.SetMetaDataAnnotation(&ns.ObjectMeta, names.DNS, choice)
	if err := t.Client.Patch(ctx, ns, client.MergeFrom(was)); err != nil {
		return fmt.Errorf("annotate namespace %s: %w", ns.Name, err)
	}
	return nil
}

// NewTenant creates a VirtualCluster and waits until it is ready.
func (s *SuperCluster) NewTenant(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*Tenant, error) {
	if err := s.Client.Create(ctx, vc); err != nil {
		return nil, fmt.Errorf("create the VirtualCluster: %w", err)
	}
	if err := s.WaitReady(ctx, vc); err != nil {
		return nil, err
	}
	return s.Connect(ctx, vc)
}

// WaitReady waits until a VirtualCluster is ready, and updates vc.
func (s *SuperCluster) WaitReady(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) error {
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := s.Client.Get(ctx, client.ObjectKeyFromObject(vc), vc); err != nil {
			return false, err
		}
		return meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionReady), nil
	})
	if err != nil {
		return fmt.Errorf("VirtualCluster %s is not ready, its conditions are %v: %w", vc.Name, vc.Status.Conditions, err)
	}
	return nil
}

// Connect connects to a tenant that is ready, with its admin's kubeconfig.
func (s *SuperCluster) Connect(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (*Tenant, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	if err := s.Client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read the tenant's kubeconfig: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig.ForAdmin(secret.Data))
	if err != nil {
		return nil, fmt.Errorf("parse the tenant's kubeconfig: %w", err)
	}
	config.QPS = -1
	c, err := NewClient(config)
	return &Tenant{Client: c, Config: config, VC: vc.DeepCopy()}, err
}

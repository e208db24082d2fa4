package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

const (
	// patience is how long one step may take. A deletion is a request for each kind
	// and namespace of the super cluster: a minute, on a machine that has much else
	// to do.
	patience = 3 * time.Minute
	poll     = 20 * time.Millisecond
)

// Admin is the super cluster's, who makes and removes tenants.
type Admin struct {
	client client.WithWatch
	config *rest.Config
}

// NewAdmin makes an admin of the super cluster.
func NewAdmin(super *rest.Config) (*Admin, error) {
	c, err := newClient(super)
	if err != nil {
		return nil, err
	}
	return &Admin{client: c, config: super}, nil
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), tenancyv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("set up scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// Create makes a VirtualCluster with a provisioner in the namespace default, if
// there is none of that name; empty for the default provisioner.
func (a *Admin) Create(ctx context.Context, name string, provisioner tenancyv1alpha1.ProvisionerType) error {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	vc.Spec.Provisioner = provisioner
	if err := a.client.Create(ctx, vc); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create VirtualCluster %s: %w", name, err)
	}
	return nil
}

// Connect waits until the VirtualCluster is ready and takes the kubeconfig that
// its tenant gets.
func (a *Admin) Connect(ctx context.Context, name string) (*Tenant, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: name}
	err := eventually(ctx, func(ctx context.Context) (bool, error) {
		err := a.client.Get(ctx, key, vc)
		return err == nil && meta.IsStatusConditionTrue(vc.Status.Conditions, tenancyv1alpha1.ConditionReady), err
	})
	if err != nil {
		return nil, fmt.Errorf("VirtualCluster %s is not ready (%s): %w", name, vc.Status.Message, err)
	}
	secret := &corev1.Secret{}
	key = client.ObjectKey{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	if err := a.client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	own, forUsers := secret.Data[names.AdminKubeconfigKey], kubeconfig.ForUsers(secret.Data)
	if vc.Spec.Provisioner == tenancyv1alpha1.ProvisionerConverted {
		own = forUsers // there is no other address
	}
	tenant, err := newTenant(name, vc.Status.ClusterNamespace, own, forUsers)
	if err != nil {
		return nil, err
	}
	tenant.converted = vc.Spec.Provisioner == tenancyv1alpha1.ProvisionerConverted
	return tenant, nil
}

// remove deletes a VirtualCluster and waits until it is gone.
func (a *Admin) remove(ctx context.Context, name string) error {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	if err := a.client.Delete(ctx, vc); err != nil {
		return fmt.Errorf("delete VirtualCluster %s: %w", name, err)
	}
	err := eventually(ctx, func(ctx context.Context) (bool, error) {
		err := a.client.Get(ctx, client.ObjectKeyFromObject(vc), vc)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("VirtualCluster %s is not gone (%s): %w", name, vc.Status.Message, err)
	}
	return nil
}

// pods are the pods in the super cluster that are the tenant's, by the UID of
// the tenant's own.
func (a *Admin) pods(ctx context.Context, tenant *Tenant) (map[string]*corev1.Pod, error) {
	list, selected := &corev1.PodList{}, ofTenant(tenant.Name)
	if tenant.converted {
		selected = client.MatchingLabels{names.Converted: tenant.Namespace}
	}
	if err := a.client.List(ctx, list, selected); err != nil {
		return nil, fmt.Errorf("list the super cluster's pods of %s: %w", tenant.Name, err)
	}
	byUID := make(map[string]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pod := &list.Items[i]
		// That of a converted tenant is the tenant's own.
		byUID[cmp.Or(pod.Annotations[names.UID], string(pod.UID))] = pod
	}
	return byUID, nil
}

// namespaces are the names of the super cluster's namespaces that are the tenant's.
func (a *Admin) namespaces(ctx context.Context, tenant string) ([]string, error) {
	list := &corev1.NamespaceList{}
	if err := a.client.List(ctx, list, ofTenant(tenant)); err != nil {
		return nil, fmt.Errorf("list the super cluster's namespaces of %s: %w", tenant, err)
	}
	return namesOf(list.Items), nil
}

func namesOf(namespaces []corev1.Namespace) []string {
	found := make([]string, 0, len(namespaces))
	for i := range namespaces {
		found = append(found, namespaces[i].Name)
	}
	return found
}

func ofTenant(name string) client.MatchingLabels {
	return client.MatchingLabels{names.VCName: name, names.VCNamespace: metav1.NamespaceDefault}
}

// eventually waits until the condition holds. Errors of the condition end it.
func eventually(ctx context.Context, condition wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, condition)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

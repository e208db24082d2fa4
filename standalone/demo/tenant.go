package demo

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
)

const (
	shop     = "shop"
	web      = "web"
	replicas = 3
	// decoderBuffer is how far the decoder looks to tell YAML from JSON.
	decoderBuffer = 4096
)

//go:embed shop.yaml
var shopManifest []byte

// Tenant is a user of a tenant cluster, who has its kubeconfig only. It uses the
// control plane's own address, whose responses are those of the apiserver, if there
// is one.
type Tenant struct {
	// Name is the VirtualCluster's.
	Name string
	// Namespace is the tenant's root namespace in the super cluster.
	Namespace string
	// Kubeconfig is the one that the tenant gets.
	Kubeconfig []byte

	// converted: it has no control plane.
	converted bool

	client client.WithWatch
	config *rest.Config
}

func newTenant(name, namespace string, own, forUsers []byte) (*Tenant, error) {
	config, err := kubeconfig.RESTConfig(own)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	c, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of %s: %w", name, err)
	}
	return &Tenant{Name: name, Namespace: namespace, Kubeconfig: forUsers, client: c, config: config}, nil
}

// open applies the manifest of the shop.
func (t *Tenant) open(ctx context.Context) error {
	objects, err := parse(shopManifest)
	if err != nil {
		return err
	}
	for _, object := range objects {
		apply := client.ApplyConfigurationFromUnstructured(object)
		if err := t.client.Apply(ctx, apply, client.FieldOwner("demo")); err != nil {
			return fmt.Errorf("%s: apply %s %s: %w", t.Name, object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// parse reads the objects of a manifest.
func parse(manifest []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), decoderBuffer)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the manifest: %w", err)
		}
		objects = append(objects, object)
	}
}

// pods are all that the tenant sees, in all namespaces.
func (t *Tenant) pods(ctx context.Context) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := t.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("%s: list pods: %w", t.Name, err)
	}
	return list.Items, nil
}

// awaitRunning waits until count pods exist, and all of them run, as the tenant
// sees it.
func (t *Tenant) awaitRunning(ctx context.Context, count int) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	running := 0
	err := eventually(ctx, func(ctx context.Context) (_ bool, err error) {
		pods, err = t.pods(ctx)
		running = countRunning(pods)
		return len(pods) == count && running == count, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s has %d pods, %d of them running, and should have %d: %w", t.Name, len(pods), running, count, err)
	}
	return pods, nil
}

func countRunning(pods []corev1.Pod) int {
	running := 0
	for i := range pods {
		if pods[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running
}

func (t *Tenant) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: web}}
}

func (t *Tenant) scale(ctx context.Context, count int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, count)
	if err := t.client.Patch(ctx, t.deployment(), client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("%s: scale the Deployment: %w", t.Name, err)
	}
	return nil
}

func (t *Tenant) deleteDeployment(ctx context.Context) error {
	if err := t.client.Delete(ctx, t.deployment(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("%s: delete the Deployment: %w", t.Name, err)
	}
	return nil
}

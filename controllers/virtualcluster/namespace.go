package virtualcluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// clusterKey is the name of the root namespace, or a Failure that says what to change.
func clusterKey(vc *tenancyv1alpha1.VirtualCluster) (string, error) {
	key := names.ClusterKey(vc.Namespace, vc.Name, vc.UID)
	problems := names.ValidateClusterKey(key)
	if len(problems) == 0 {
		return key, nil
	}
	if over := len(key) - validation.DNS1123LabelMaxLength; over > 0 {
		return "", provisioner.Failf(tenancyv1alpha1.ReasonNameTooLong,
			"the tenant's namespace would be %s, which is %d characters too long: "+
				"create the VirtualCluster again with a shorter name, or in a namespace with one",
			key, over)
	}
	return "", provisioner.Failf(tenancyv1alpha1.ReasonInvalidSpec,
		"the tenant's namespace cannot be %s: %s", key, strings.Join(problems, "; "))
}

// findRoot gets the root namespace: nil if there is none, a Failure if the one
// there is belongs to something else.
func (r *Reconciler) findRoot(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, key string) (*corev1.Namespace, error) {
	root := &corev1.Namespace{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: key}, root)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get root namespace %s: %w", key, err)
	}
	return root, checkOwner(vc, root)
}

// owns reports whether the namespace has the VirtualCluster's UID.
func owns(vc *tenancyv1alpha1.VirtualCluster, namespace *corev1.Namespace) bool {
	return namespace.Annotations[names.VCUID] == string(vc.UID)
}

// checkOwner fails unless the namespace is the VirtualCluster's.
func checkOwner(vc *tenancyv1alpha1.VirtualCluster, namespace *corev1.Namespace) error {
	if owns(vc, namespace) {
		return nil
	}
	return provisioner.Failf(tenancyv1alpha1.ReasonNamespaceConflict,
		"namespace %s exists and does not belong to this VirtualCluster (its annotation %s is %q): "+
			"delete the namespace, or create the VirtualCluster under another name",
		namespace.Name, names.VCUID, namespace.Annotations[names.VCUID])
}

// ensureRoot creates the root namespace or corrects its metadata. root is what
// the cache has of it, or nil.
func (r *Reconciler) ensureRoot(
	ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, root *corev1.Namespace, key string, kind tenancyv1alpha1.ProvisionerType,
) error {
	want := rootMetadata(vc, key, kind)
	if root != nil && holds(root.Labels, want.Labels) && holds(root.Annotations, want.Annotations) {
		return nil
	}
	if root == nil {
		created, err := r.createRoot(ctx, vc, want)
		if created || err != nil {
			return err
		}
	}
	apply := corev1ac.Namespace(key).WithLabels(want.Labels).WithAnnotations(want.Annotations)
	if err := r.Client.Apply(ctx, apply, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("update root namespace %s: %w", key, err)
	}
	return nil
}

// createRoot reports whether it created the root namespace. If one exists that
// the cache does not show, it has lost its label or belongs to something else;
// only in the first case may it be touched.
func (r *Reconciler) createRoot(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, want metav1.ObjectMeta) (bool, error) {
	err := r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: want}, fieldOwner)
	if err == nil {
		r.Events.Eventf(vc, nil, corev1.EventTypeNormal, eventRootNamespaceCreated, actionProvision, "Created namespace %s", want.Name)
		return true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("create root namespace %s: %w", want.Name, err)
	}
	existing := &corev1.Namespace{}
	if err := r.Live.Get(ctx, types.NamespacedName{Name: want.Name}, existing); err != nil {
		return false, fmt.Errorf("get root namespace %s: %w", want.Name, err)
	}
	return false, checkOwner(vc, existing)
}

// rootMetadata is the metadata of the root namespace.
func rootMetadata(vc *tenancyv1alpha1.VirtualCluster, key string, kind tenancyv1alpha1.ProvisionerType) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:   key,
		Labels: names.OwnerLabels(vc),
		Annotations: map[string]string{
			names.Cluster:     key,
			names.VCUID:       string(vc.UID),
			names.VCName:      vc.Name,
			names.VCNamespace: vc.Namespace,
			names.Provisioner: string(kind),
		},
	}
}

// holds reports whether have holds all of want.
func holds(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || got != value {
			return false
		}
	}
	return true
}

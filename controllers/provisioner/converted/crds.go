package converted

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// granter lets the service accounts of tenants use the custom resources of the
// tenants' CRDs: no other tenant has these API groups. The request is for a
// cluster key.
type granter struct {
	client client.Client
}

// crdType is the type of CRDs, of which only the metadata are read.
var crdType = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"}

func addGranter(mgr manager.Manager) error {
	toTenant := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, crd client.Object) []reconcile.Request {
		if key := crd.GetLabels()[names.Converted]; key != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: key}}}
		}
		return nil
	})
	return builder.ControllerManagedBy(mgr).Named("converted-crds").
		Watches(&metav1.PartialObjectMetadata{TypeMeta: crdType}, toTenant).
		Complete(&granter{client: mgr.GetClient()})
}

// Reconcile implements reconcile.Reconciler. The root namespace owns what it
// writes.
func (g *granter) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	root := &corev1.Namespace{}
	if err := g.client.Get(ctx, request.NamespacedName, root); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !root.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	crds, err := crdsOf(ctx, g.client, root.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	name := names.ConvertedCRDs + root.Name
	owner := metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("Namespace").WithName(root.Name).WithUID(root.UID)
	role := rbacv1ac.ClusterRole(name).WithOwnerReferences(owner)
	if groups := groupsOf(crds, root.Name); len(groups) > 0 {
		role.WithRules(rbacv1ac.PolicyRule().WithAPIGroups(groups...).WithResources("*").WithVerbs("*"))
	}
	if err := g.client.Apply(ctx, role, fieldOwner, client.ForceOwnership); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply ClusterRole %s: %w", name, err)
	}
	binding := rbacv1ac.ClusterRoleBinding(name).WithOwnerReferences(owner).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(root.Name).WithName(names.ConvertedAccount))
	if err := g.client.Apply(ctx, binding, fieldOwner, client.ForceOwnership); err != nil {
		return reconcile.Result{}, fmt.Errorf("apply ClusterRoleBinding %s: %w", name, err)
	}
	return reconcile.Result{}, nil
}

// crdsOf returns the CRDs of a tenant in the super cluster.
func crdsOf(ctx context.Context, reader client.Reader, clusterKey string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: crdType.APIVersion, Kind: crdType.Kind + "List"}}
	if err := reader.List(ctx, list, client.MatchingLabels{names.Converted: clusterKey}); err != nil {
		return nil, fmt.Errorf("list CRDs of %s: %w", clusterKey, err)
	}
	return list.Items, nil
}

// groupsOf returns the API groups of CRDs. The label of a CRD alone gives a
// tenant nothing: the group has to be the tenant's.
func groupsOf(crds []metav1.PartialObjectMetadata, clusterKey string) []string {
	groups := sets.Set[string]{}
	for _, crd := range crds {
		if _, group, _ := strings.Cut(crd.Name, "."); strings.HasPrefix(group, names.ConvertedGroup(clusterKey)) {
			groups.Insert(group)
		}
	}
	return slices.Sorted(maps.Keys(groups))
}

package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// completed is the number of a tenant's objects that a shell offers at most.
const completed = 500

// complete completes the name of a tenant, and then that of an object after its
// kind and a slash.
func (o *syncOptions) complete(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	kind, _, hasKind := strings.Cut(word, "/")
	if len(args) != 1 || !hasKind {
		return o.completeNames(1)(c, args, word)
	}
	names, err := o.objects(c.Context(), args[0], kind)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// objects returns the objects of a kind as KIND/NAME. A control plane that sleeps
// is not woken for it. The tenant's apiserver may answer anything, and a shell
// gets only what can be a name.
func (o *syncOptions) objects(ctx context.Context, name, kind string) ([]cobra.Completion, error) {
	_, vc, err := o.read(ctx, name)
	if err != nil || vc.Spec.Paused || meta.IsStatusConditionFalse(vc.Status.Conditions, tenancyv1alpha1.ConditionAwake) {
		return nil, err
	}
	t, err := o.open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer t.close()
	mapping, err := t.mapping(ctx, kind)
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	options := []client.ListOption{client.Limit(completed)}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		options = append(options, client.InNamespace(o.namespace))
	}
	if err := t.objects.List(ctx, list, options...); err != nil {
		return nil, err
	}
	names := []cobra.Completion{}
	for i := range list.Items {
		if found := list.Items[i].Name; len(validation.IsDNS1123Subdomain(found)) == 0 && len(names) < completed {
			names = append(names, kind+"/"+found)
		}
	}
	return names, nil
}

package removal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/config/converted"
	"github.com/virtualcluster/virtualcluster/config/crd"
)

// Kinds that are deleted last.
const (
	definitionKind = "CustomResourceDefinition"
	namespaceKind  = "Namespace"
)

// releases deletes the Secrets in which Helm keeps the release, before objects of
// it: afterwards, labels alone say what is left.
func (r *Removal) releases(ctx context.Context) error {
	if err := r.findRelease(ctx); err != nil {
		return err
	}
	found, err := r.list(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, client.InNamespace(r.Namespace))
	if err != nil {
		return err
	}
	return r.delete(ctx, slices.DeleteFunc(found, func(s *unstructured.Unstructured) bool { return !isRelease(s, r.release) }))
}

// findRelease finds the name of the release of Helm by the objects of it.
func (r *Removal) findRelease(ctx context.Context) error {
	for _, kind := range installation.Kinds() {
		found, err := r.installed(ctx, kind)
		if err != nil {
			return err
		}
		for _, object := range found {
			if r.release = object.GetAnnotations()[installation.ReleaseName]; r.release != "" {
				return nil
			}
		}
	}
	return nil
}

// installed lists the objects of a kind that were installed.
func (r *Removal) installed(ctx context.Context, kind installation.Kind) ([]*unstructured.Unstructured, error) {
	found, err := r.list(ctx, kind.GroupVersionKind, client.MatchingLabels{installation.PartOf: installation.Project})
	return slices.DeleteFunc(found, func(o *unstructured.Unstructured) bool { return !isOurs(o, r.Namespace) }), err
}

// objects deletes what was installed, except for definitions and namespaces.
func (r *Removal) objects(ctx context.Context) error {
	for _, kind := range append(installation.Kinds(), installation.OptionalKinds()...) {
		if kind.Kind == definitionKind || kind.Kind == namespaceKind {
			continue
		}
		found, err := r.installed(ctx, kind)
		if err != nil {
			return err
		}
		if err := r.delete(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// definitions deletes the CustomResourceDefinitions, and with them what is left
// of their objects.
func (r *Removal) definitions(ctx context.Context) error {
	all, err := definitionNames()
	if err != nil {
		return err
	}
	kind := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: definitionKind}
	var found []*unstructured.Unstructured
	for _, name := range all {
		named, err := r.list(ctx, kind, byName(name))
		if err != nil {
			return err
		}
		for _, definition := range named {
			if !isOurs(definition, r.Namespace) {
				r.Progress("  keeps %s: neither the chart nor config/default has installed it", describe(definition))
				continue
			}
			found = append(found, definition)
		}
	}
	return r.delete(ctx, found)
}

// definitionNames returns the names of the CustomResourceDefinitions of this
// version, those for converted tenants included.
func definitionNames() ([]string, error) {
	all, err := crd.All()
	if err != nil {
		return nil, err
	}
	objects, err := converted.Read()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, each := range all {
		found = append(found, each.Name)
	}
	for _, object := range objects {
		if object.GetKind() == definitionKind {
			found = append(found, object.GetName())
		}
	}
	return found, nil
}

// leftovers deletes what the components have made in the namespaces of the
// installation.
func (r *Removal) leftovers(ctx context.Context) error {
	for _, ns := range namespaces(r.Namespace) {
		found, err := r.content(ctx, ns, made)
		if err != nil {
			return err
		}
		if err := r.delete(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// namespaces deletes the namespaces of the installation in which nothing of
// others is.
func (r *Removal) namespaces(ctx context.Context) error {
	kind := schema.GroupVersionKind{Version: "v1", Kind: namespaceKind}
	for _, name := range namespaces(r.Namespace) {
		found, err := r.list(ctx, kind, byName(name))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			continue
		}
		others, err := r.content(ctx, name, foreign)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			r.Progress("  keeps namespace %s: it has objects that are not of the installation: %s", name, enumerate(others))
			continue
		}
		if err := r.delete(ctx, found); err != nil {
			return err
		}
	}
	return nil
}

// content lists the objects of all kinds in a namespace that are of one sort.
func (r *Removal) content(ctx context.Context, ns string, sort residue) ([]*unstructured.Unstructured, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(r.Resources)
	if err != nil { // the super cluster would not delete the namespace, either
		return nil, exit.With(fmt.Errorf("list the kinds of the super cluster, to find what is in namespace %s: %w", ns, err),
			"Repair or delete the APIServices that are not available, and run the command again: kubectl get apiservices")
	}
	var found []*unstructured.Unstructured
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list the kinds of the super cluster: %w", err)
		}
		for _, resource := range list.APIResources {
			objects, err := r.list(ctx, gv.WithKind(resource.Kind), client.InNamespace(ns))
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				if classify(o, r.Namespace, r.release) == sort {
					found = append(found, o)
				}
			}
		}
	}
	return found, nil
}

// enumerate describes objects for a message, the first of many.
func enumerate(objects []*unstructured.Unstructured) string {
	const most = 5
	all := make([]string, 0, len(objects))
	for _, o := range objects {
		all = append(all, o.GetKind()+" "+o.GetName())
	}
	slices.Sort(all) // the order of discovery varies
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("%d more", len(all)-most))
	}
	return strings.Join(all, ", ")
}

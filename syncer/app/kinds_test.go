package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// TestValidatedKinds checks what plugins learn of the kinds: those that tenants
// declare, as the super cluster's cache holds them.
func TestValidatedKinds(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	resources := map[string]string{}
	var byMetadata []string
	for _, k := range validated(table) {
		resources[k.Kind] = k.Resource.String()
		if m, ok := k.Object.(*metav1.PartialObjectMetadata); ok {
			byMetadata = append(byMetadata, k.Kind)
			if m.GroupVersionKind() != k.GroupVersionKind {
				t.Errorf("the cache has no %s", m.GroupVersionKind())
			}
		}
	}
	for kind, want := range map[string]string{
		"Pod": "pods", "Namespace": "namespaces", "Ingress": "ingresses.networking.k8s.io",
		"Node": "", "StorageClass": "", "Event": "",
	} {
		if got := resources[kind]; got != want {
			t.Errorf("the resource of %s is %q, want %q", kind, got, want)
		}
	}
	slices.Sort(byMetadata)
	if diff := cmp.Diff([]string{"ConfigMap", "ResourceClaimTemplate", "Secret"}, byMetadata); diff != "" {
		t.Errorf("kinds that are cached by their metadata (-want +got):\n%s", diff)
	}
}

// TestKindsOfAProgram adds kinds to those of the project.
func TestKindsOfAProgram(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string) *Options {
		own := kinds.Down[*corev1.PodTemplate]{Name: name, Object: &corev1.PodTemplate{}}
		return &Options{Extensions: Extensions{Kinds: []kinds.Flow{own}}}
	}
	flows, table, err := with("PodTemplate").kinds(scheme)
	if err != nil {
		t.Fatal(err)
	}
	if last := table[len(table)-1]; len(flows) != len(table) || last.Resource != "podtemplates" {
		t.Errorf("%d kinds in a table of %d, and the last is %s", len(flows), len(table), last.Resource)
	}
	if _, _, err := with("Pod").kinds(scheme); err == nil || !strings.Contains(err.Error(), "two kinds have the name Pod") {
		t.Errorf("got %v for a name that is taken", err)
	}
}

// Rbac writes the roles of vc-syncer, according to the kinds that it syncs.
package main

import (
	"bytes"
	"fmt"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/syncer/resources"
)

// header is a comment at the beginning of the file.
const header = "# Written by make generate, from the kinds that the syncer syncs.\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rbac:", err)
		os.Exit(1)
	}
}

// run writes the roles to the file in the argument.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the file to write, got %q", args)
	}
	rules, err := app.Rules(resources.All(resources.Agent{}, nil))
	if err != nil {
		return err
	}
	out := bytes.NewBufferString(header)
	for _, role := range roles(rules) {
		manifest, err := yaml.Marshal(role)
		if err != nil {
			return fmt.Errorf("write a manifest: %w", err)
		}
		out.WriteString("---\n")
		out.Write(manifest)
	}
	return os.WriteFile(args[0], out.Bytes(), 0o644) //nolint:gosec // a public manifest
}

// roles returns the syncer's roles: one for the whole super cluster, which is
// aggregated, one for leader election, and one for the Leases of replicas that
// share the tenants.
func roles(rules []rbacv1.PolicyRule) []any {
	return []any{
		&rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{
				Name: rbac.Syncer + "-base", Labels: map[string]string{rbac.AggregateToSyncer: "true"},
			},
			Rules: rules,
		},
		&rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: rbac.Syncer},
			Rules:      app.LeaderRules(),
		},
		&rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Namespace: rbac.ReplicasNamespace, Name: rbac.Syncer + "-replicas"},
			Rules:      app.ShareRules(),
		},
	}
}

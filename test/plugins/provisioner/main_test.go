package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner/provisionertest"
	"github.com/virtualcluster/virtualcluster/test/local"
	"github.com/virtualcluster/virtualcluster/test/localtest"
)

// startCluster starts a super cluster for the test.
func startCluster(t *testing.T, args ...string) *local.SuperCluster {
	t.Helper()
	return localtest.Start(t, append([]string{"--manager=false", "--agent=false"}, args...)...)
}

// elsewhere starts a cluster that is a tenant's control plane, with what its
// operator does.
func elsewhere(t *testing.T) *local.SuperCluster {
	t.Helper()
	return startCluster(t, "--syncer=false", "--nodes=0")
}

// adopt puts the kubeconfig of an admin of the control plane, made for this
// VirtualCluster, into the folder.
func adopt(ctx context.Context, folder string, vc *tenancyv1alpha1.VirtualCluster, there *local.SuperCluster) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: vc.Name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: vc.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	if err := errors.Join(there.Client.Create(ctx, account), there.Client.Create(ctx, binding)); err != nil {
		return fmt.Errorf("create an admin for %s: %w", vc.Name, err)
	}
	config, err := there.AccountConfig(ctx, account)
	if err != nil {
		return err
	}
	return local.WriteKubeconfig(filepath.Join(folder, fileOf(vc)), config)
}

func TestContract(t *testing.T) {
	there, folder, serial := elsewhere(t), t.TempDir(), 0
	newVirtualCluster := func() *tenancyv1alpha1.VirtualCluster {
		serial++
		name := fmt.Sprintf("t%d", serial)
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: name, UID: types.UID(name)}}
		vc.Status.ClusterNamespace = "tenants-123456-" + name
		return vc
	}
	provisionertest.Run(t, provisionertest.Case{
		New: func(context.Context) (provisioner.Provisioner, error) { return newAdopted(folder), nil },
		VirtualCluster: func(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
			vc := newVirtualCluster()
			return vc, adopt(ctx, folder, vc, there)
		},
		Invalid: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) { return newVirtualCluster(), nil },
	})
}

// TestTenant: a VirtualCluster of the provisioner becomes ready on a real super
// cluster, by the permissions of vc-manager alone.
func TestTenant(t *testing.T) {
	there, super, folder := elsewhere(t), startCluster(t, "--nodes=1"), t.TempDir()
	startManager(t, super, folder)
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}}
	vc.Spec.Provisioner = "Adopted"
	if err := adopt(t.Context(), folder, vc, there); err != nil {
		t.Fatal(err)
	}
	tenant, err := super.NewTenant(t.Context(), vc)
	if err != nil {
		t.Fatal(err)
	}
	if tenant.Config.Host != there.Config.Host {
		t.Errorf("the tenant's apiserver is %s, want %s", tenant.Config.Host, there.Config.Host)
	}
	offered := meta.FindStatusCondition(vc.Status.Conditions, tenancyv1alpha1.ConditionProvisionerAvailable)
	if offered == nil || offered.Status != metav1.ConditionTrue || !strings.Contains(offered.Message, "offers: Adopted, External.") {
		t.Errorf("the condition is %v, want the provisioners that the installation offers", offered)
	}
}

// startManager runs the command until the end of the test.
func startManager(t *testing.T, super *local.SuperCluster, folder string) {
	t.Helper()
	config, err := super.ManagerConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	localtest.Run(t, newCommand(), config, "--adopted-kubeconfigs", folder)
}

package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// cached is a cache with these objects.
type cached struct {
	client.Reader

	tenants    []tenancyv1alpha1.VirtualCluster
	secrets    []corev1.Secret
	namespaces []corev1.Namespace
}

func (c *cached) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *tenancyv1alpha1.VirtualClusterList:
		list.Items = c.tenants
	case *corev1.SecretList:
		list.Items = c.secrets
	case *corev1.NamespaceList:
		list.Items = c.namespaces
	}
	return nil
}

// add adds a tenant whose kubeconfig has a certificate of this validity.
func (c *cached) add(t *testing.T, number int, validity time.Duration) {
	t.Helper()
	authority, err := pki.NewAuthority("kubernetes", 2*validity, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client("admin", nil, validity, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	config, err := kubeconfig.Access{
		Cluster: "c", User: "admin", Server: "https://x", CA: authority.CertPEM, Certificate: pair.CertPEM, Key: pair.KeyPEM,
	}.Write()
	if err != nil {
		t.Fatal(err)
	}
	c.secrets = append(c.secrets, corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(number)), ResourceVersion: "1"},
		Data:       map[string][]byte{names.AdminKubeconfigKey: config},
	})
	c.tenants = append(c.tenants, tenancyv1alpha1.VirtualCluster{Status: tenancyv1alpha1.VirtualClusterStatus{Phase: tenancyv1alpha1.PhaseRunning}})
}

const day = 24 * time.Hour

// TestManyTenantsAddNoSeries: a thousand tenants have the series of one, and the
// values are those of all of them.
func TestManyTenantsAddNoSeries(t *testing.T) {
	in := &cached{}
	registry := prometheus.NewRegistry()
	_, err := registerMetrics(registry, sources{
		reader: in, registry: provisioner.Registry{tenancyv1alpha1.ProvisionerHosted: nil}, byDefault: tenancyv1alpha1.ProvisionerHosted,
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		number, err := testutil.GatherAndCount(registry)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	none := count()
	in.add(t, 0, 10*day)
	for number := range 999 {
		in.add(t, number+1, 365*day)
	}
	if all := count(); all != none {
		t.Errorf("1,000 tenants have %d series, and none %d", all, none)
	}
	in.tenants[0].Spec.Provisioner, in.tenants[0].Status.Phase = "Gone", tenancyv1alpha1.PhaseError
	in.tenants[1].Status.Phase = ""
	want := `
# HELP vc_manager_certificates_expiring Number of certificates of a kind that have expired or expire within 30 days.
# TYPE vc_manager_certificates_expiring gauge
vc_manager_certificates_expiring{kind="kubeconfig"} 1
vc_manager_certificates_expiring{kind="store_authority"} 0
vc_manager_certificates_expiring{kind="store_client"} 0
vc_manager_certificates_expiring{kind="store_members"} 0
vc_manager_certificates_expiring{kind="webhook"} 0
# HELP vc_manager_tenants VirtualClusters by phase and provisioner: unknown, if the manager does not have it. All replicas export all of them.
# TYPE vc_manager_tenants gauge
`
	for _, phase := range []string{"Asleep", "Error", "Paused", "Pending", "Running", "Terminating"} {
		hosted, unknown := map[string]int{"Running": 998, "Pending": 1}[phase], map[string]int{"Error": 1}[phase]
		want += fmt.Sprintf("vc_manager_tenants{phase=%q,provisioner=%q} %d\n", phase, "Hosted", hosted)
		want += fmt.Sprintf("vc_manager_tenants{phase=%q,provisioner=%q} %d\n", phase, "unknown", unknown)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "vc_manager_certificates_expiring", "vc_manager_tenants"); err != nil {
		t.Error(err)
	}
}

// TestKubeconfigsAreReadOnce: a scrape parses those that have changed, and
// remembers those that exist.
func TestKubeconfigsAreReadOnce(t *testing.T) {
	in := &cached{}
	in.add(t, 0, 10*day)
	in.add(t, 1, 20*day)
	in.secrets = append(in.secrets, corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "damaged"}})
	k := &kubeconfigs{reader: in}
	first := k.list()
	if first[0].Before(time.Now()) || !first[1].After(first[0]) || !first[2].IsZero() {
		t.Errorf("they expire at %v", first)
	}
	in.secrets[0].Data, in.secrets[1] = nil, in.secrets[2] // the version is the same
	if second := k.list(); !second[0].Equal(first[0]) || !second[1].IsZero() {
		t.Errorf("then they expire at %v", second)
	}
	if len(k.read) != 2 {
		t.Errorf("%d are remembered, and 2 exist", len(k.read))
	}
}

// TestOrphanedNamespaces: namespaces count that no VirtualCluster has for a
// while.
func TestOrphanedNamespaces(t *testing.T) {
	namespace := func(uid string, age time.Duration) corev1.Namespace {
		return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(time.Now().Add(-age)), Annotations: map[string]string{names.VCUID: uid},
		}}
	}
	c := &cached{
		tenants:    []tenancyv1alpha1.VirtualCluster{{ObjectMeta: metav1.ObjectMeta{UID: "1"}}},
		namespaces: []corev1.Namespace{namespace("1", time.Hour), namespace("2", time.Hour), namespace("2", 2*time.Minute), namespace("3", time.Second)},
	}
	if got := testutil.ToFloat64(newOrphaned(sources{reader: c})); got != 2 {
		t.Errorf("got %v", got)
	}
}

package host

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"

	"github.com/virtualcluster/virtualcluster/standalone/internal/metricstest"
)

// cached is a cache with these objects.
type cached struct {
	client.Reader

	planes []tenancyv1alpha1.HostedControlPlane
	stores []tenancyv1alpha1.ControlPlaneStore
}

func (c *cached) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *tenancyv1alpha1.HostedControlPlaneList:
		list.Items = c.planes
	case *tenancyv1alpha1.ControlPlaneStoreList:
		list.Items = c.stores
	}
	return nil
}

// add adds a control plane of a replica, with conditions as TYPE=STATUS:REASON.
func (c *cached) add(replica string, conditions ...string) {
	plane := tenancyv1alpha1.HostedControlPlane{Status: tenancyv1alpha1.HostedControlPlaneStatus{Host: replica}}
	for _, text := range conditions {
		kind, rest, _ := strings.Cut(text, "=")
		status, reason, _ := strings.Cut(rest, ":")
		plane.Status.Conditions = append(plane.Status.Conditions,
			metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason})
	}
	c.planes = append(c.planes, plane)
}

func TestMetrics(t *testing.T) {
	g := NewWithT(t)
	in := &cached{}
	store := tenancyv1alpha1.ControlPlaneStore{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	store.Spec.Capacity.Storage = new(resource.MustParse("4Gi"))
	store.Status.Bytes, store.Status.ControlPlanes = 1<<20, 7
	store.Status.Conditions = []metav1.Condition{{Type: tenancyv1alpha1.ConditionStoreHealthy, Status: metav1.ConditionTrue}}
	in.stores = append(in.stores, store)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(in, "me"))
	families, err := registry.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(families).To(HaveLen(5))
	metricstest.Documented(t, "../../docs/metrics.md", families)
	none, err := testutil.GatherAndCount(registry)
	g.Expect(err).NotTo(HaveOccurred())

	in.add("me")
	in.add("me", "Ready=False:Starting")
	in.add("me", "Ready=False:StartFailed")
	in.add("me", "Ready=False:Asleep", "Awake=False:Idle")
	in.add("other", "Ready=True:Ready")
	for range 1000 {
		in.add("me", "Ready=True:Ready", "Awake=True:Awake")
	}
	g.Expect(testutil.GatherAndCount(registry)).To(Equal(none), "1,000 control planes add series")
	want := "# HELP vc_host_control_planes Control planes that this replica runs, by state: ready, asleep, starting or failing.\n" +
		"# TYPE vc_host_control_planes gauge\n"
	for _, state := range []string{"asleep 1", "failing 1", "ready 1000", "starting 2"} {
		name, number, _ := strings.Cut(state, " ")
		want += fmt.Sprintf("vc_host_control_planes{state=%q} %s\n", name, number)
	}
	for _, metric := range []string{
		"vc_host_store_bytes 1048576 Size of the data in use of a ControlPlaneStore.",
		"vc_host_store_capacity_bytes 4294967296 Size up to which a ControlPlaneStore accepts writes.",
		"vc_host_store_control_planes 7 Control planes whose data is in a ControlPlaneStore.",
		"vc_host_store_healthy 1 1 if a ControlPlaneStore can be read and written, 0 otherwise.",
	} {
		part := strings.SplitN(metric, " ", 3)
		want += fmt.Sprintf("# HELP %s %s All replicas export all stores.\n# TYPE %s gauge\n%s{store=\"default\"} %s\n",
			part[0], part[2], part[0], part[0], part[1])
	}
	g.Expect(testutil.GatherAndCompare(registry, strings.NewReader(want))).To(Succeed())
}

package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// scaled is how many replicas one of the tenants has in the end.
const scaled = 5

// stage is where the demo plays.
type stage struct {
	admin   *Admin
	dataDir string
	out     io.Writer
	begun   time.Time
}

// Play shows the whole life of three tenants on the super cluster whose data
// directory is given, and tells it on out: red and blue have control planes, and
// light has none.
func Play(ctx context.Context, super *rest.Config, dataDir string, out io.Writer) error {
	admin, err := NewAdmin(super)
	if err != nil {
		return err
	}
	s := &stage{admin: admin, dataDir: dataDir, out: out, begun: time.Now()}
	tenants, err := s.createTenants(ctx)
	if err != nil {
		return err
	}
	red, blue, light := tenants[0], tenants[1], tenants[2]
	if err := s.openShops(ctx, red, blue, light); err != nil {
		return err
	}
	s.tellf("the tenants are apart:")
	for _, pair := range [][2]*Tenant{{red, blue}, {light, red}} {
		if err := apart(ctx, admin, pair[0], pair[1], func(line string) { _, _ = fmt.Fprintln(out, "    "+line) }); err != nil {
			return err
		}
	}
	if err := s.change(ctx, red, blue); err != nil {
		return err
	}
	return s.removeTenants(ctx, red, blue, light)
}

// tellf says what has happened, and when.
func (s *stage) tellf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, "%6.1f s  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

func (s *stage) createTenants(ctx context.Context) ([]*Tenant, error) {
	kinds := []struct {
		name        string
		provisioner tenancyv1alpha1.ProvisionerType
		has         string
	}{
		{name: "red", has: "a kube-apiserver of its own"},
		{name: "blue", has: "a kube-apiserver of its own"},
		{"light", tenancyv1alpha1.ProvisionerConverted, "no control plane: the gateway converts its requests"},
	}
	for _, kind := range kinds {
		if err := s.admin.Create(ctx, kind.name, kind.provisioner); err != nil {
			return nil, err
		}
	}
	var tenants []*Tenant
	for _, kind := range kinds {
		tenant, err := s.admin.Connect(ctx, kind.name)
		if err != nil {
			return nil, err
		}
		tenants = append(tenants, tenant)
		s.tellf("tenant %s is ready: it has %s", kind.name, kind.has)
	}
	return tenants, nil
}

// openShops has all tenants apply the same manifest, and shows what became of it.
func (s *stage) openShops(ctx context.Context, tenants ...*Tenant) error {
	rows := make([][]row, len(tenants))
	group, ctx := errgroup.WithContext(ctx)
	for i, tenant := range tenants {
		group.Go(func() (err error) {
			rows[i], err = s.openShop(ctx, tenant)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.tellf("all applied the same Deployment, Service, ConfigMap and Secret in the same namespace, each with its own kubeconfig:")
	_, _ = fmt.Fprintln(s.out)
	if err := writeTable(s.out, slices.Concat(rows...)); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	_, _ = fmt.Fprintln(s.out)
	return nil
}

// openShop applies the manifest, waits for the pods, and returns what there is
// then, on both sides.
func (s *stage) openShop(ctx context.Context, tenant *Tenant) ([]row, error) {
	// The pods of a namespace can be watched before there is one.
	watch, err := startStopwatch(ctx, tenant)
	if err != nil {
		return nil, err
	}
	defer watch.stop()
	if err := tenant.open(ctx); err != nil {
		return nil, err
	}
	pods, err := tenant.awaitRunning(ctx, replicas)
	if err != nil {
		return nil, err
	}
	copies, err := s.admin.pods(ctx, tenant)
	if err != nil {
		return nil, err
	}
	rows, err := s.copiedRows(ctx, tenant)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		r, err := podRow(tenant, &pods[i], copies[string(pods[i].UID)], watch)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func podRow(tenant *Tenant, pod, super *corev1.Pod, watch *stopwatch) (row, error) {
	if super == nil {
		return row{}, fmt.Errorf("the pod %s/%s of %s runs, but not in the super cluster", pod.Namespace, pod.Name, tenant.Name)
	}
	took, _ := watch.took(pod.UID)
	return row{
		tenant: tenant.Name, object: "pod " + pod.Namespace + "/" + pod.Name, super: super.Namespace + "/" + super.Name,
		node: pod.Spec.NodeName, phase: string(pod.Status.Phase), took: took,
	}, nil
}

// change scales the Deployment of one tenant and deletes the other's, and waits
// until the super cluster has followed.
func (s *stage) change(ctx context.Context, one, other *Tenant) error {
	if err := one.scale(ctx, scaled); err != nil {
		return err
	}
	if err := other.deleteDeployment(ctx); err != nil {
		return err
	}
	for _, want := range []struct {
		tenant *Tenant
		pods   int
	}{{one, scaled}, {other, 0}} {
		if _, err := want.tenant.awaitRunning(ctx, want.pods); err != nil {
			return err
		}
		if err := s.awaitCopies(ctx, want.tenant, want.pods); err != nil {
			return err
		}
	}
	s.tellf("%s scaled its Deployment to %d, %s deleted its own: %d and 0 pods, on both sides", one.Name, scaled, other.Name, scaled)
	return nil
}

func (s *stage) awaitCopies(ctx context.Context, tenant *Tenant, count int) error {
	have := 0
	err := eventually(ctx, func(ctx context.Context) (bool, error) {
		copies, err := s.admin.pods(ctx, tenant)
		have = len(copies)
		return have == count, err
	})
	if err != nil {
		return fmt.Errorf("the super cluster has %d pods of %s and should have %d: %w", have, tenant.Name, count, err)
	}
	return nil
}

func (s *stage) removeTenants(ctx context.Context, tenants ...*Tenant) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, tenant := range tenants {
		group.Go(func() error {
			if err := s.admin.remove(ctx, tenant.Name); err != nil {
				return err
			}
			return nothingLeft(ctx, s.admin, s.dataDir, tenant)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.tellf("all are deleted: no namespace, no key in etcd and no file of them is left")
	return nil
}

package integration

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/hosted"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner/provisionertest"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// deleting deletes the VirtualCluster first, which vc-manager waits for: the data
// of one that lives is not deleted.
type deleting struct {
	provisioner.Provisioner

	super client.Client
}

func (d deleting) Delete(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster) (gone bool, err error) {
	if err := client.IgnoreNotFound(d.super.Delete(ctx, vc.DeepCopy())); err != nil {
		return false, err
	}
	return d.Provisioner.Delete(ctx, vc)
}

// The spec is vc-manager's part, whose own provisioner of the same name is
// not used: its VirtualClusters are of another one.
var _ = Describe("The provisioner Hosted of an installation", func() {
	It("does what vc-manager relies on", func(ctx SpecContext) {
		super := kit.StartSite(ctx)
		super.StartReplica(ctx, "host-a")
		config := must(super.ManagerConfig(ctx))
		start := func(ctx context.Context) (provisioner.Provisioner, error) {
			mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: super.Client.Scheme(), Metrics: server.Options{BindAddress: "0"}})
			if err != nil {
				return nil, err
			}
			for _, obj := range []client.Object{&tenancyv1alpha1.HostedControlPlane{}, &tenancyv1alpha1.ControlPlaneStore{}} {
				if _, err := mgr.GetCache().GetInformer(ctx, obj); err != nil {
					return nil, err
				}
			}
			go func() {
				defer GinkgoRecover()
				Expect(mgr.Start(ctx)).To(Succeed())
			}()
			mgr.GetCache().WaitForCacheSync(ctx)
			return deleting{hosted.New(mgr, types.NamespacedName{Namespace: rbac.Namespace, Name: rbac.Host}), super.Client}, nil
		}
		place := func(change ...func(*tenancyv1alpha1.VirtualCluster)) *tenancyv1alpha1.VirtualCluster {
			vc := kit.VirtualCluster(append(change, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "Checked" })...)
			kit.Create(ctx, super.Client, vc)
			root := kit.Namespace(names.ClusterKey(vc.Namespace, vc.Name, vc.UID))
			root.Labels, root.Annotations = names.OwnerLabels(vc), names.OwnerAnnotations(vc)
			kit.Create(ctx, super.Client, root)
			patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"clusterNamespace":"`+root.Name+`"}}`))
			Expect(super.Client.Status().Patch(ctx, vc, patch)).To(Succeed())
			return vc
		}
		Expect(provisionertest.Check(ctx, provisionertest.Case{
			New:            start,
			VirtualCluster: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) { return place(), nil },
			Invalid: func(context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
				return place(func(vc *tenancyv1alpha1.VirtualCluster) {
					vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Store: "none"}
				}), nil
			},
		})).To(Succeed())
	})
})

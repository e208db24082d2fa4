package kit

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// SiteTenant is a tenant of a site, whose control plane vc-host runs.
type SiteTenant struct {
	VC    *tenancyv1alpha1.VirtualCluster
	Plane *tenancyv1alpha1.HostedControlPlane
	// Config is that of the tenant's admin, without client-side rate limits.
	Config *rest.Config
}

// NewTenant creates a tenant of the default provisioner, whose control plane is
// ready.
func (s *Site) NewTenant(ctx context.Context, change ...func(*tenancyv1alpha1.VirtualCluster)) *SiteTenant {
	GinkgoHelper()
	byDefault := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = "" }
	t := &SiteTenant{VC: VirtualCluster(append(change, byDefault)...), Plane: &tenancyv1alpha1.HostedControlPlane{}}
	Create(ctx, s.Client, t.VC)
	Eventually(Read(ctx, s.Client, t.VC)).WithTimeout(6 * Soon).Should(
		HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	Expect(Get(ctx, s.Client, t.VC)).To(Succeed())
	t.Plane.Namespace, t.Plane.Name = t.VC.Status.ClusterNamespace, tenancyv1alpha1.HostedControlPlaneName
	Expect(Get(ctx, s.Client, t.Plane)).To(Succeed())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: t.Plane.Namespace, Name: names.AdminKubeconfigSecret}}
	Expect(Get(ctx, s.Client, secret)).To(Succeed())
	var err error
	t.Config, err = clientcmd.RESTConfigFromKubeConfig(secret.Data[names.AdminKubeconfigKey])
	Expect(err).NotTo(HaveOccurred())
	t.Config.QPS = -1
	return t
}

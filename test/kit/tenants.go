package kit

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// VirtualCluster returns a VirtualCluster with a unique name.
func VirtualCluster(change ...func(*tenancyv1alpha1.VirtualCluster)) *tenancyv1alpha1.VirtualCluster {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("t%d", time.Now().UnixNano()%1e9),
	}}
	for _, f := range change {
		f(vc)
	}
	return vc
}

// WithIsolation sets the isolation of a tenant's control plane.
func WithIsolation(isolation tenancyv1alpha1.Isolation) func(*tenancyv1alpha1.VirtualCluster) {
	return func(vc *tenancyv1alpha1.VirtualCluster) {
		if vc.Spec.ControlPlane == nil {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{}
		}
		vc.Spec.ControlPlane.Isolation = isolation
	}
}

// Tenant creates a tenant for a spec or a container of specs and deletes it at
// the end, without waiting for that.
func Tenant(ctx context.Context, super *local.SuperCluster, vc *tenancyv1alpha1.VirtualCluster) *local.Tenant {
	GinkgoHelper()
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(super.Client.Delete(ctx, vc))).To(Succeed()) })
	t, err := super.NewTenant(ctx, vc)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// ControlPlane creates a control plane on a super cluster without a syncer, for
// an External tenant of another super cluster.
func ControlPlane(ctx context.Context, host *local.SuperCluster) *local.Tenant {
	GinkgoHelper()
	vc := VirtualCluster()
	Create(ctx, host.Client, vc)
	Eventually(Read(ctx, host.Client, vc)).WithTimeout(2 * Soon).Should(
		HaveCondition(tenancyv1alpha1.ConditionControlPlaneReady, metav1.ConditionTrue, tenancyv1alpha1.ReasonReady))
	Expect(Get(ctx, host.Client, vc)).To(Succeed())
	there, err := host.Connect(ctx, vc)
	Expect(err).NotTo(HaveOccurred())
	return there
}

// ExternalTenant creates a tenant of a control plane elsewhere, which the
// syncer reaches by the given kubeconfig. The client of the tenant connects to
// the control plane itself.
func ExternalTenant(
	ctx context.Context, super *local.SuperCluster, vc *tenancyv1alpha1.VirtualCluster, there *local.Tenant, kubeconfig []byte,
) *local.Tenant {
	GinkgoHelper()
	SetExternal(vc, KubeconfigSecret(ctx, super, there.VC.Name, kubeconfig))
	t := Tenant(ctx, super, vc)
	t.Client, t.Config = there.Client, there.Config
	return t
}

// SetExternal makes a VirtualCluster one of a control plane elsewhere, whose
// kubeconfig is in a Secret.
func SetExternal(vc *tenancyv1alpha1.VirtualCluster, secret string) {
	vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerExternal
	vc.Spec.External = &tenancyv1alpha1.ExternalControlPlane{KubeconfigSecretName: secret}
}

// KubeconfigSecret creates a Secret with a kubeconfig, deletes it at the end,
// and returns its name.
func KubeconfigSecret(ctx context.Context, super *local.SuperCluster, name string, kubeconfig []byte) string {
	GinkgoHelper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Data:       map[string][]byte{"kubeconfig": kubeconfig},
	}
	Create(ctx, super.Client, secret)
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, secret)).To(Succeed()) })
	return name
}

// Hostile starts a hostile apiserver in front of a real one and closes it at the
// end. Its certificate is also for the server names.
func Hostile(behind *rest.Config, serverNames ...string) *local.Hostile {
	GinkgoHelper()
	hostile, err := local.NewHostile(behind, serverNames...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hostile.Close)
	return hostile
}

// HaveCondition matches a VirtualCluster with a condition.
func HaveCondition(kind string, status metav1.ConditionStatus, reason string) gomegatypes.GomegaMatcher {
	return WithTransform(func(vc *tenancyv1alpha1.VirtualCluster) string {
		c := meta.FindStatusCondition(vc.Status.Conditions, kind)
		if c == nil {
			return "none"
		}
		return string(c.Status) + " " + c.Reason
	}, Equal(string(status)+" "+reason))
}

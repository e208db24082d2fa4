package installed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/crd"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// previousDir is the environment variable with the directory of the sources of
// an earlier version. Its images have the tag of version earlier.
const previousDir, earlier = "VC_PREVIOUS", "0.0.0"

// objectsBefore is how many ConfigMaps a tenant has before an upgrade.
const objectsBefore = 50

var _ = Describe("An installation of an earlier version", Ordered, func() {
	var (
		red   *local.Tenant
		first *corev1.Pod
	)

	BeforeAll(func(ctx SpecContext) {
		dir := os.Getenv(previousDir)
		if _, err := os.Stat(dir); dir == "" || err != nil {
			Skip("there is no earlier version in " + previousDir + ": git has none here, or make previous-images did not run")
		}
		helm.Must(ctx, "package", filepath.Join(dir, "charts", release), "--destination", charts, "--version", earlier, "--app-version", "v"+earlier)
		makeNamespace(ctx)
		DeferCleanup(func(ctx SpecContext) { purge(ctx) }, NodeTimeout(later))
		runHelm(ctx, "install", earlier)
		red = newTenant(ctx, "red", expose(ctx, "vc-host", intstr.FromString("apiservers")))
		first = shouldRun(ctx, red, workload("first", "netexec"))
		for i := range objectsBefore {
			kit.Create(ctx, red.Client, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("before-%d", i)},
				Data:       map[string]string{"number": fmt.Sprint(i)},
			})
		}
	}, NodeTimeout(2*later))

	It("is upgraded while a client that lists ten times a second sees no failure, and loses nothing", func(ctx SpecContext) {
		before := configMapsOf(ctx, red)
		listing := kit.StartLister(ctx, clientsOf(red))
		DeferCleanup(listing.Stop)
		started := time.Now()
		runHelm(ctx, "upgrade", after)
		AddReportEntry("helm upgrade from an earlier version", time.Since(started).String())
		listing.Stop()
		AddReportEntry("its lists, failures, longest gap", []any{listing.Lists(), len(listing.Failures()), listing.Gap().String()})
		shouldHaveImages(ctx, after)
		shouldBeUntouched(ctx, red, first)
		Expect(configMapsOf(ctx, red)).To(Equal(before), "the same objects, which nothing has written")
		now := red.VC.DeepCopy()
		Expect(kit.Get(ctx, super.Client, now)).To(Succeed())
		Expect(now.UID).To(Equal(red.VC.UID))
		shouldRun(ctx, red, workload("after-upgrade", "pause"))
		Expect(listing.Failures()).To(BeEmpty())
	}, SpecTimeout(2*later))

	It("has the CustomResourceDefinitions of the later one", func(ctx SpecContext) {
		all, err := crd.All()
		Expect(err).NotTo(HaveOccurred())
		for _, want := range all {
			got := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: want.Name}}
			Expect(kit.Get(ctx, super.Client, got)).To(Succeed())
			Expect(got.Spec.Versions).To(HaveLen(len(want.Spec.Versions)))
			for i, version := range want.Spec.Versions {
				Expect(got.Spec.Versions[i].Schema).To(Equal(version.Schema), want.Name)
			}
		}
	})
})

// configMapsOf returns the ConfigMaps of a tenant that a spec has made, by name.
func configMapsOf(ctx context.Context, t *local.Tenant) map[string]corev1.ConfigMap {
	GinkgoHelper()
	list := &corev1.ConfigMapList{}
	Expect(t.Client.List(ctx, list, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
	found := map[string]corev1.ConfigMap{}
	for _, c := range list.Items {
		found[c.Name] = c
	}
	return found
}

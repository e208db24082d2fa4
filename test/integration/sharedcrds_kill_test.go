package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/syncer/guard"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/sharedcrds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// asPlatform returns a tenant with the client of the platform.
func asPlatform(ctx context.Context, t *local.Tenant) *local.Tenant {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.AdminKubeconfigSecret}, secret)).To(Succeed())
	config := must(clientcmd.RESTConfigFromKubeConfig(names.PlatformKubeconfig(secret.Data)))
	config.QPS = -1
	return &local.Tenant{VC: t.VC, Config: config, Client: must(local.NewClient(config))}
}

// sharingProcess runs the syncer of the shared CRDs of one tenant.
type sharingProcess struct {
	shared  *sharedcrds.Shared
	tenant  *local.Tenant
	secrets *kinds.Kind
	cache   cache.Cache
}

// newSharingProcess returns a process that does not run yet.
func newSharingProcess(ctx context.Context, t *local.Tenant) *sharingProcess {
	GinkgoHelper()
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(end)
	mgr, err := ctrl.NewManager(super.Config, ctrl.Options{
		Scheme: super.Client.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logger,
	})
	Expect(err).NotTo(HaveOccurred())
	shared, err := sharedcrds.New(mgr, briefly)
	Expect(err).NotTo(HaveOccurred())
	Expect(shared.AddTo(mgr)).To(Succeed())
	go func() { _ = mgr.Start(living) }()
	table, err := app.Table()
	Expect(err).NotTo(HaveOccurred())
	p := &sharingProcess{shared: shared, tenant: t, cache: cacheOf(ctx, t.Config)}
	for _, k := range table {
		if k.Name == "Secret" {
			p.secrets = k
		}
	}
	return p
}

// run runs a process that is killed at a write, until then or until it is done.
func (p *sharingProcess) run(ctx context.Context, write int, before bool, done func() bool) {
	GinkgoHelper()
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	k := &killer{kill: kill, before: before, left: write}
	vc, err := kit.Read(ctx, super.Client, p.tenant.VC)()
	Expect(err).NotTo(HaveOccurred())
	inSuper := k.wrap(super.Client)
	syncer := sharedcrds.NewSyncer(p.shared, sharedcrds.Tenant{
		Tenant:  translate.NewTenant(vc, ""),
		Cluster: processCluster{k.wrap(p.tenant.Client), p.cache},
		Guard: &guard.Guard{
			UID: vc.UID, Client: inSuper, Namespaced: inSuper.IsObjectNamespaced, Rejected: func() {},
			Namespace: func(ctx context.Context, name string) (*corev1.Namespace, error) {
				ns := kit.Namespace(name)
				return ns, kit.Get(ctx, super.Client, ns)
			},
		},
		Secrets: p.secrets,
		Report:  func(context.Context, client.Object, string, string) error { return nil },
	})
	runUntil(ctx, syncer.Run, kill, time.Second, done)
}

// phaseOf returns the recorded phase of a tenant's CRD; empty without a record.
func phaseOf(ctx context.Context, t *local.Tenant, name string) string {
	GinkgoHelper()
	found := &corev1.Secret{}
	err := super.Client.Get(ctx, client.ObjectKey{Namespace: t.Key(), Name: names.SharedCRDsSecret}, found)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	all := map[string]struct {
		Phase string `json:"phase"`
	}{}
	if err == nil {
		Expect(json.Unmarshal(found.Data["crds"], &all)).To(Succeed())
	}
	return all[name].Phase
}

// storeInVersion changes a CRD to store objects in a version.
func storeInVersion(name string) definitionChange {
	return func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Storage = d.Spec.Versions[i].Name == name
		}
	}
}

var _ = Describe("A syncer that is killed at every write of a shared CRD", Label("long"), Ordered, func() {
	var t *local.Tenant
	var p *sharingProcess

	BeforeAll(func(ctx SpecContext) {
		t = tenant(ctx)
		p = newSharingProcess(ctx, asPlatform(ctx, t))
	})

	Describe("while no other runs", Ordered, func() {
		BeforeAll(takeSyncerAway)

		// The last of the writes rewrites the objects.
		reach := func(ctx context.Context, what string, done func() bool) {
			GinkgoHelper()
			reach(ctx, p, what, 6, 60, done)
		}

		It("replaces and restores the tenant's own CRD, twice, without losing a field", func(ctx SpecContext) {
			own := sharedDefinition("hammer", []string{"own", "both"}, []string{"v1alpha1", "v1beta1"})
			kit.Create(ctx, t.Client, own)
			kit.ShouldExist(ctx, t.Client, own)
			wanted := own.Spec.DeepCopy()
			var objects []*unstructured.Unstructured
			for i := range 3 {
				u := sharedObject(own, "v1beta1", fmt.Sprintf("kept-%d", i), map[string]any{"own": fmt.Sprint("mine ", i), "both": "b"})
				objects = append(objects, u)
				createServed(ctx, t, u)
			}
			d := sharedDefinition("hammer", []string{"both", "color"}, []string{"v1", "v2"}, publishedTo(names.AllTenants))
			share(ctx, d)
			for round := range 2 {
				choose(ctx, t, sharedcrds.SystemCRDFirst)
				reach(ctx, "replaced", func() bool {
					found, err := kit.Read(ctx, t.Client, d)()
					return err == nil && len(found.Spec.Versions) == 3 && phaseOf(ctx, t, d.Name) == "Replaced"
				})
				for _, u := range objects {
					seen := sharedObject(d, "v2", u.GetName(), nil)
					Eventually(kit.Read(ctx, t.Client, seen)).Should(And(HaveField("GetUID()", u.GetUID()), field(u.Object["spec"], "spec")))
				}
				if round == 1 {
					By("storing objects in a version of the shared CRD, as a tenant with an external control plane can")
					kit.Edit(ctx, p.tenant.Client, d.DeepCopy(), storeInVersion("v2"))
				}
				By("changing an object under the shared CRD")
				kit.Edit(ctx, t.Client, sharedObject(d, "v2", objects[0].GetName(), nil), func(u *unstructured.Unstructured) {
					u.SetLabels(map[string]string{"touched": "true"})
				})
				choose(ctx, t, sharedcrds.LocalCRDFirst)
				reach(ctx, "restored", func() bool {
					found, err := kit.Read(ctx, t.Client, own)()
					return err == nil && equality.Semantic.DeepEqual(&found.Spec, wanted) && phaseOf(ctx, t, d.Name) == ""
				})
				for _, u := range objects {
					Eventually(kit.Read(ctx, t.Client, u)).Should(And(HaveField("GetUID()", u.GetUID()), field(u.Object["spec"], "spec")))
				}
				restored, err := kit.Read(ctx, t.Client, own)()
				Expect(err).NotTo(HaveOccurred())
				Expect(restored.Status.StoredVersions).To(ConsistOf("v1beta1"))
				Expect(restored.Labels).NotTo(HaveKey(names.SharedCRD))
			}
		})

		It("continues to rewrite objects where the one before was killed", func(ctx SpecContext) {
			const count = 120
			own := sharedDefinition("kettle", []string{"own"}, []string{"v1alpha1"})
			kit.Create(ctx, t.Client, own)
			createServed(ctx, t, sharedObject(own, "v1alpha1", "kept-0", map[string]any{"own": "0"}))
			for i := 1; i < count; i++ {
				kit.Create(ctx, t.Client, sharedObject(own, "v1alpha1", fmt.Sprintf("kept-%d", i), map[string]any{"own": fmt.Sprint(i)}))
			}
			d := sharedDefinition("kettle", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
			share(ctx, d)
			choose(ctx, t, sharedcrds.SystemCRDFirst)
			reach(ctx, "replaced", func() bool { return phaseOf(ctx, t, d.Name) == "Replaced" })
			kit.Edit(ctx, p.tenant.Client, d.DeepCopy(), storeInVersion("v1"))
			choose(ctx, t, sharedcrds.LocalCRDFirst)
			// More writes than a page of objects has, and fewer than there are objects.
			for processes := 0; phaseOf(ctx, t, d.Name) != ""; processes++ {
				Expect(processes).To(BeNumerically("<", 6))
				p.run(ctx, 70, false, func() bool { return phaseOf(ctx, t, d.Name) == "" })
			}
			Eventually(kit.Read(ctx, t.Client, own)).Should(HaveField("Status.StoredVersions", ConsistOf("v1alpha1")))
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(sharedObject(own, "v1alpha1", "", nil).GroupVersionKind())
			Eventually(func() ([]unstructured.Unstructured, error) { return all.Items, t.Client.List(ctx, all) }).Should(
				And(HaveLen(count), HaveEach(HaveField("Object", HaveKeyWithValue("spec", HaveKey("own"))))))
		})

		It("shares and recalls a copy, twice, and keeps its objects", func(ctx SpecContext) {
			d := sharedDefinition("iron", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
			share(ctx, d)
			u := sharedObject(d, "v1", "kept", map[string]any{"color": "red"})
			for round := range 2 {
				kit.Edit(ctx, super.Client, d, publishedTo(names.AllTenants))
				reach(ctx, "shared", func() bool {
					found, err := kit.Read(ctx, t.Client, d)()
					return err == nil && found.Spec.Versions[0].Served && phaseOf(ctx, t, d.Name) == "Copied"
				})
				if round == 0 {
					createServed(ctx, t, u)
				}
				kit.Edit(ctx, super.Client, d, publishedTo(""))
				reach(ctx, "recalled", func() bool {
					found, err := kit.Read(ctx, t.Client, d)()
					return err == nil && !found.Spec.Versions[0].Served && phaseOf(ctx, t, d.Name) == "Left"
				})
			}
			kit.Edit(ctx, super.Client, d, publishedTo(names.AllTenants))
			reach(ctx, "shared", func() bool {
				found, err := kit.Read(ctx, t.Client, d)()
				return err == nil && found.Spec.Versions[0].Served && phaseOf(ctx, t, d.Name) == "Copied"
			})
			Eventually(kit.Read(ctx, t.Client, u)).Should(And(HaveField("GetUID()", u.GetUID()), field("red", "spec", "color")))
		})

		It("deletes a recalled copy without objects", func(ctx SpecContext) {
			d := sharedDefinition("jack", []string{"color"}, []string{"v1"}, publishedTo(names.AllTenants))
			share(ctx, d)
			exists := func() bool {
				found := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: d.Name}}
				return kit.Get(ctx, t.Client, found) == nil
			}
			reach(ctx, "shared", func() bool { return exists() && phaseOf(ctx, t, d.Name) == "Copied" })
			kit.Edit(ctx, super.Client, d, publishedTo(""))
			reach(ctx, "deleted", func() bool { return !exists() && phaseOf(ctx, t, d.Name) == "" })
		})
	})
})

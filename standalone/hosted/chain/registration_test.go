package chain_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/typed/apiregistration/v1"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// automanaged is the label of APIServices that upstream's controllers manage.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// bootstrapped adds a tenant that has the objects of every cluster.
func bootstrapped(t *testing.T, c *chain.Chain, name string) (*chain.Tenant, apiregistration.APIServiceInterface) {
	t.Helper()
	tenant, client := add(t, c, name)
	g := NewWithT(t)
	g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
	g.Eventually(func() bool { return chain.HasRegistered(tenant) }, later).Should(BeTrue())
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		createNamespace(t, client, "team")
	}
	return tenant, apiServicesOf(t, tenant).ApiregistrationV1().APIServices()
}

// beLocal matches an APIService of a local API that is available.
func beLocal(name, managed string) OmegaMatcher {
	return And(
		HaveField("Name", name), HaveField("Labels", HaveKeyWithValue(automanaged, managed)), HaveField("Spec.Service", BeNil()),
		HaveField("Status.Conditions", ConsistOf(And(
			HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue), HaveField("Reason", "Local")))))
}

func reading(t *testing.T, all apiregistration.APIServiceInterface, name string) func() (*apiregistrationv1.APIService, error) {
	t.Helper()
	return func() (*apiregistrationv1.APIService, error) { return all.Get(t.Context(), name, metav1.GetOptions{}) }
}

// failing reads an APIService, and returns the error alone.
func failing(t *testing.T, all apiregistration.APIServiceInterface, name string) func() error {
	t.Helper()
	return func() error {
		_, err := reading(t, all, name)()
		return err
	}
}

// patch changes an APIService, and returns it.
func patch(t *testing.T, all apiregistration.APIServiceInterface, name, change string) *apiregistrationv1.APIService {
	t.Helper()
	found, err := all.Patch(t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found
}

// TestBuiltInAPIServices: a new tenant has those of the built-in APIs. As with
// upstream, users who delete or change one see that until the next start, and
// keep what they manage themselves.
func TestBuiltInAPIServices(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	_, all := bootstrapped(t, c, "red")
	_, others := bootstrapped(t, c, "blue")
	list, err := all.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(And(
		ContainElements(beLocal("v1.", "onstart"), beLocal("v1.apps", "onstart"), beLocal("v1.apiextensions.k8s.io", "onstart")),
		Not(ContainElement(HaveField("Name", "v1.apiregistration.k8s.io")))))
	before := len(list.Items)

	g.Expect(all.Delete(t.Context(), "v1.apps", metav1.DeleteOptions{})).To(Succeed())
	patch(t, all, "v1.batch", `{"spec":{"versionPriority":7}}`)
	patch(t, all, "v1.policy", `{"metadata":{"labels":null},"spec":{"versionPriority":7}}`)
	g.Consistently(reading(t, all, "v1.batch"), "1s").Should(HaveField("Spec.VersionPriority", BeEquivalentTo(7)))
	g.Expect(failing(t, all, "v1.apps")()).To(Satisfy(apierrors.IsNotFound))
	g.Expect(others.Get(t.Context(), "v1.apps", metav1.GetOptions{})).To(beLocal("v1.apps", "onstart"))

	c.RemoveTenants()
	_, all = bootstrapped(t, secondChain(t.Context(), t), "red")
	g.Expect(reading(t, all, "v1.apps")()).To(beLocal("v1.apps", "onstart"))
	g.Expect(reading(t, all, "v1.batch")()).To(HaveField("Spec.VersionPriority", BeEquivalentTo(15)))
	g.Expect(reading(t, all, "v1.policy")()).To(HaveField("Spec.VersionPriority", BeEquivalentTo(7)))
	list, err = all.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list.Items).To(HaveLen(before))
}

// TestAPIServicesOfCustomResources exist as long as their definitions, and are
// restored.
func TestAPIServicesOfCustomResources(t *testing.T) {
	t.Parallel() // upstream's finalizer waits for seconds
	g := NewWithT(t)
	c, _ := startChain(t)
	red, all := bootstrapped(t, c, "red")
	_, others := bootstrapped(t, c, "blue")
	const name = "v1.example.com"
	define(t, red, definitionOf("size", "integer"))
	g.Eventually(reading(t, all, name), later).Should(beLocal(name, "true"))
	first, err := all.Get(t.Context(), name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(all.Delete(t.Context(), name, metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(reading(t, all, name), later).Should(And(beLocal(name, "true"), HaveField("UID", Not(Equal(first.UID)))))
	changed := patch(t, all, name, `{"spec":{"groupPriorityMinimum":7}}`)
	g.Eventually(reading(t, all, name), later).Should(And(HaveField("Spec", first.Spec), HaveField("UID", changed.UID)))
	g.Expect(failing(t, others, name)()).To(Satisfy(apierrors.IsNotFound))

	undefine(t, red)
	g.Eventually(failing(t, all, name), later).Should(Satisfy(apierrors.IsNotFound))
}

// TestRegistrationAfterRestart: an APIService whose definition was deleted while
// nothing ran is deleted, and others wait until a request needs definitions.
func TestRegistrationAfterRestart(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	const name = "v1.example.com"
	red, services := bootstrapped(t, c, "red")
	define(t, red, definitionOf("size", "integer"))
	g.Eventually(reading(t, services, name), later).Should(beLocal(name, "true"))
	c.RemoveTenants()

	c = secondChain(t.Context(), t)
	red, services = bootstrapped(t, c, "red")
	g.Expect(chain.ServesCustomResources(red)).To(BeFalse(), "no request needs them")
	g.Expect(reading(t, services, name)()).To(beLocal(name, "true"))
	g.Expect(services.Delete(t.Context(), name, metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(reading(t, services, name), later).Should(beLocal(name, "true"))
	c.RemoveTenants()

	_, err := all.Delete(t.Context(), keyspace.Prefix("red")+"/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com")
	g.Expect(err).NotTo(HaveOccurred())
	_, services = bootstrapped(t, secondChain(t.Context(), t), "red")
	g.Expect(failing(t, services, name)()).To(Satisfy(apierrors.IsNotFound))
}

// TestLocalAPIServiceOfAUser is available, and stays as it is.
func TestLocalAPIServiceOfAUser(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, all := bootstrapped(t, c, "red")
	_, err := all.Create(t.Context(), &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.example.com"},
		Spec:       apiregistrationv1.APIServiceSpec{Group: "example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(reading(t, all, "v1.example.com"), later).Should(HaveField("Status.Conditions", ConsistOf(HaveField("Reason", "Local"))))
	g.Expect(chain.Aggregates(red)).To(BeFalse())
	patch(t, all, "v1.example.com", `{"metadata":{"labels":{"`+automanaged+`":"true"}}}`)
	g.Eventually(failing(t, all, "v1.example.com"), later).Should(Satisfy(apierrors.IsNotFound), "it claims to be of a custom resource that does not exist")
}

package chain_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// TestCopies creates the objects of two clusters and compares them.
func TestCopies(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	uids := map[types.UID]string{}
	for _, name := range []string{"red", "blue"} {
		tenant, client := add(t, c, name)
		g.Expect(c.CreateObjects(t.Context(), tenant)).To(Succeed())
		roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(len(roles.Items)).To(BeNumerically(">", 50))
		for _, object := range objectsOf(t, all, name) {
			accessor, err := meta.Accessor(object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(uids).NotTo(HaveKey(accessor.GetUID()), "UIDs are unique across tenants")
			uids[accessor.GetUID()] = name
			g.Expect(accessor.GetCreationTimestamp().Time).To(BeTemporally("~", time.Now(), time.Minute))
		}
	}
	g.Expect(keysBelow(t, all, "/controlplanes/.")).To(BeEmpty())
}

// TestUpdatesObjects: a tenant that another version of Kubernetes has served
// gets what is missing, and keeps its own.
func TestUpdatesObjects(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	tenant, client := add(t, c, "red")
	g.Expect(c.CreateObjects(t.Context(), tenant)).To(Succeed())
	before := uidOf(t, client, metav1.NamespaceSystem)
	g.Expect(client.RbacV1().ClusterRoles().Delete(t.Context(), "view", metav1.DeleteOptions{})).To(Succeed())
	_, err := all.Put(t.Context(), "/controlplanes/red/bootstrap", "v1.0.0")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(c.CreateObjects(t.Context(), tenant)).To(Succeed())
	_, err = client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(uidOf(t, client, metav1.NamespaceSystem)).To(Equal(before))
	stamp, err := all.Get(t.Context(), "/controlplanes/red/bootstrap")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(stamp.Kvs[0].Value)).NotTo(Equal("v1.0.0"))
}

// TestInterruptedCreation: objects of a new cluster that were written in part
// are written again.
func TestInterruptedCreation(t *testing.T) {
	g := NewWithT(t)
	c, all := newChain(t)
	tenant, _ := add(t, c, "red")
	g.Expect(c.CreateObjects(t.Context(), tenant)).To(Succeed())
	complete := keysBelow(t, all, "/controlplanes/red/")
	g.Expect(len(complete)).To(BeNumerically(">", 128), "more than one transaction")
	for _, key := range []string{"bootstrap", "namespaces/kube-system", "clusterroles/view"} {
		deleted, err := all.Delete(t.Context(), "/controlplanes/red/"+key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(deleted.Deleted).To(BeEquivalentTo(1), key)
	}
	g.Expect(c.CreateObjects(t.Context(), tenant)).To(Succeed())
	g.Expect(keysBelow(t, all, "/controlplanes/red/")).To(Equal(complete))
}

// TestDefaults: each namespace of a new cluster has its service account and the
// authority of its own apiserver, before any controller runs.
func TestDefaults(t *testing.T) {
	c, _ := newChain(t)
	for _, name := range []string{"red", "blue"} {
		g := NewWithT(t)
		spec := specOf(t, name)
		spec.ClientCA = []byte("the authority of " + name)
		tenant, err := c.Add(spec)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
		for _, namespace := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			core := tenant.Client().CoreV1()
			_, err := core.ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			bundle, err := core.ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bundle.Data).To(Equal(map[string]string{"ca.crt": "the authority of " + name}))
			g.Expect(bundle.Annotations).To(HaveKey("kubernetes.io/description"))
		}
	}
}

func uidOf(t *testing.T, client kubernetes.Interface, namespace string) types.UID {
	t.Helper()
	found, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return found.UID
}

// objectsOf returns the objects of a tenant in etcd.
func objectsOf(t *testing.T, all *clientv3.Client, name string) []runtime.Object {
	t.Helper()
	g := NewWithT(t)
	response, err := all.Get(t.Context(), "/controlplanes/"+name+"/", clientv3.WithPrefix())
	g.Expect(err).NotTo(HaveOccurred())
	objects := make([]runtime.Object, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		key := strings.TrimPrefix(string(kv.Key), keyspace.Prefix(name))
		if key == "/bootstrap" {
			continue
		}
		object, err := chain.DecodeRecord(key, kv.Value)
		g.Expect(err).NotTo(HaveOccurred())
		objects = append(objects, object)
	}
	return objects
}

func keysBelow(t *testing.T, all *clientv3.Client, prefix string) []string {
	t.Helper()
	response, err := all.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	keys := make([]string, 0, len(response.Kvs))
	for _, kv := range response.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

package host

import (
	"context"
	"io/fs"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// makeKeyring makes a keyring, and counts the Secrets that it reads.
func makeKeyring() (k *keyring, super client.Client, reads *int) {
	reads = new(int)
	counted := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, object, opts...)
		},
	}).Build()
	return newKeyring(counted, counted), counted, reads
}

func openKeys(g Gomega, k *keyring) hosted.Keys {
	keys, err := k.Open(context.Background(), "red")
	g.Expect(err).NotTo(HaveOccurred())
	return keys
}

func TestKeyring(t *testing.T) {
	g := NewWithT(t)
	keyring, super, _ := makeKeyring()
	keys := openKeys(g, keyring)
	_, err := keys.Read("ca.pem")
	g.Expect(err).To(MatchError(fs.ErrNotExist))
	g.Expect(keys.Locate("ca.pem")).To(Equal("ca.pem of Secret red/control-plane-keys"))
	g.Expect(keys.Commit(t.Context())).To(Succeed())
	g.Expect(super.Get(t.Context(), types.NamespacedName{Namespace: "red", Name: "control-plane-keys"}, &corev1.Secret{})).
		NotTo(Succeed(), "without a change, nothing is written")

	g.Expect(keys.Write("ca.pem", []byte("authority"))).To(Succeed())
	g.Expect(keys.Commit(t.Context())).To(Succeed())
	g.Expect(keys.Commit(t.Context())).To(Succeed(), "a second time")
	keys = openKeys(g, keyring)
	g.Expect(keys.Read("ca.pem")).To(BeEquivalentTo("authority"))
	g.Expect(keys.Write("ca.pem", []byte("authority"))).To(Succeed())
	g.Expect(keys.Write("sa.key", []byte("key"))).To(Succeed())
	g.Expect(keys.Commit(t.Context())).To(Succeed())
	g.Expect(openKeys(g, keyring).Read("sa.key")).To(BeEquivalentTo("key"))

	stored := &corev1.Secret{}
	g.Expect(super.Get(t.Context(), types.NamespacedName{Namespace: "red", Name: "control-plane-keys"}, stored)).To(Succeed())
	g.Expect(super.Delete(t.Context(), stored)).To(Succeed())
	keyring.recent.Remove("red")
	g.Expect(openKeys(g, keyring).Read("sa.key")).To(BeEquivalentTo("key"), "keys that are deleted by hand stay")
	g.Expect(keyring.Delete(t.Context(), "red")).To(Succeed())
	g.Expect(keyring.Delete(t.Context(), "red")).To(Succeed(), "a second time")
	_, err = openKeys(g, keyring).Read("ca.pem")
	g.Expect(err).To(MatchError(fs.ErrNotExist))
}

// TestKeysOfOtherReplicas: keys that another replica has written in between are not
// overwritten.
func TestKeysOfOtherReplicas(t *testing.T) {
	for name, prepare := range map[string]func(Gomega, *keyring){
		"created": func(Gomega, *keyring) {},
		"changed": func(g Gomega, k *keyring) {
			keys := openKeys(g, k)
			g.Expect(keys.Write("ca.pem", []byte("old"))).To(Succeed())
			g.Expect(keys.Commit(context.Background())).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			keyring, _, _ := makeKeyring()
			prepare(g, keyring)
			one, other := openKeys(g, keyring), openKeys(g, keyring)
			for _, keys := range []hosted.Keys{one, other} {
				g.Expect(keys.Write("ca.pem", []byte("new of one of them"))).To(Succeed())
			}
			g.Expect(other.Write("sa.key", []byte("of the other"))).To(Succeed())
			g.Expect(one.Commit(t.Context())).To(Succeed())
			g.Expect(other.Commit(t.Context())).To(MatchError(hosted.ErrKeysChanged))
			_, err := openKeys(g, keyring).Read("sa.key")
			g.Expect(err).To(MatchError(fs.ErrNotExist))
		})
	}
	t.Run("deleted", func(t *testing.T) {
		g := NewWithT(t)
		keyring, _, _ := makeKeyring()
		keys := openKeys(g, keyring)
		g.Expect(keys.Write("ca.pem", []byte("authority"))).To(Succeed())
		g.Expect(keys.Commit(t.Context())).To(Succeed())
		keys = openKeys(g, keyring)
		g.Expect(keyring.Delete(t.Context(), "red")).To(Succeed())
		g.Expect(keys.Write("sa.key", []byte("key"))).To(Succeed())
		g.Expect(keys.Commit(t.Context())).To(MatchError(hosted.ErrKeysChanged))
	})
}

// TestKeysAreReadOnceForManyConnections: any client can connect to a control plane
// that sleeps.
func TestKeysAreReadOnceForManyConnections(t *testing.T) {
	g := NewWithT(t)
	keyring, _, reads := makeKeyring()
	keys := openKeys(g, keyring)
	g.Expect(keys.Write("ca.pem", []byte("authority"))).To(Succeed())
	g.Expect(keys.Commit(t.Context())).To(Succeed())
	*reads = 0
	for range 100 {
		keys := openKeys(g, keyring)
		g.Expect(keys.Read("ca.pem")).To(BeEquivalentTo("authority"))
		g.Expect(keys.Write("ca.pem", []byte("not committed"))).To(Succeed())
	}
	g.Expect(*reads).To(Equal(1))
}

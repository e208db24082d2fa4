package chain_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/chain"
)

// TestListsShareObjects: whatever format a list has, the next one gets objects
// as they are stored.
func TestListsShareObjects(t *testing.T) {
	c, _ := newChain(t)
	tenant, client := add(t, c, "red")
	NewWithT(t).Expect(c.Bootstrap(t.Context(), tenant)).To(Succeed())
	createListed(t, client)
	paths := []string{
		"/api/v1/pods", "/api/v1/services", "/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/persistentvolumeclaims",
		"/apis/apps/v1/deployments", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/discovery.k8s.io/v1/endpointslices",
	}
	const metadata = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	formats := []string{
		"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;as=Table;g=meta.k8s.io;v=v1",
		"application/json" + metadata, "application/vnd.kubernetes.protobuf" + metadata,
	}
	for _, path := range paths {
		t.Run(strings.TrimPrefix(path, "/"), func(t *testing.T) {
			g := NewWithT(t)
			for range 2 {
				for _, format := range formats {
					g.Expect(listed(t, client, path, format)).NotTo(BeEmpty())
				}
			}
			remembered := listed(t, client, path, formats[0])
			forget(c)
			g.Expect(listed(t, client, path, formats[0])).To(Equal(remembered))
		})
	}
}

// TestListsAreConsistent: a list has what was written before it, and never
// objects of another tenant, or of one that had the name.
func TestListsAreConsistent(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	red, client := add(t, c, "red")
	_, other := add(t, c, "blue")
	maps, others := client.CoreV1().ConfigMaps("team"), other.CoreV1().ConfigMaps("team")
	createTeam(t, client)
	createTeam(t, other)
	_, err := others.Create(t.Context(), configMap("of blue"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	written, err := maps.Create(t.Context(), configMap("0"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, value := range []string{"1", "2", "3"} {
		written.Data["value"] = value
		written, err = maps.Update(t.Context(), written, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		for range 2 {
			found, err := maps.List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found.Items).To(ConsistOf(*written))
		}
	}
	g.Expect(maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})).To(Succeed())
	found, err := maps.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Items).To(BeEmpty())

	c.Remove(red)
	_, again := add(t, c, "red")
	found, err = again.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Items).To(BeEmpty())
	found, err = others.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Items).To(HaveLen(1))
	g.Expect(found.Items[0].Data).To(HaveKeyWithValue("value", "of blue"))
}

func configMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}, Data: map[string]string{"value": value},
	}
}

// createListed creates objects of kinds whose lists upstream completes.
func createListed(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	g := NewWithT(t)
	createTeam(t, client)
	_, err := client.CoreV1().Pods("team").Create(t.Context(), pod(), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	group := "snapshot.storage.k8s.io"
	_, err = client.CoreV1().PersistentVolumeClaims("team").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			DataSource:  &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "before"},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	labels := map[string]string{"app": "web"}
	_, err = client.AppsV1().Deployments("team").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod().Spec},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = client.CoreV1().ConfigMaps("team").Create(t.Context(), configMap("0"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// listed returns a list in a format.
func listed(t *testing.T, client kubernetes.Interface, path, format string) string {
	t.Helper()
	status := 0
	body, err := client.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", format).Do(t.Context()).StatusCode(&status).Raw()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(status).To(Equal(http.StatusOK))
	return string(body)
}

// forget frees what lists have decoded.
func forget(c *chain.Chain) {
	c.Trim()
	c.Trim()
}

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A pod finds around it", func() {
	It("its tenant's apiserver, which knows its token", Label(smoke), func(ctx SpecContext) {
		p := pod(newNamespace(ctx, red), "client", agnhost, "inclusterclient", "--poll-interval=1")
		create(ctx, red, p)
		shouldBeReady(ctx, red, p)
		said := logs(red.Super(p.Namespace), p.Name)
		Eventually(said).WithContext(ctx).Should(ContainSubstring("authz_header="))
		Consistently(said).WithContext(ctx).WithTimeout(soon / 30).ShouldNot(ContainSubstring("status=failed"))
	})

	It("a token of its tenant's apiserver for the requested audience, which is renewed in the file", func(ctx SpecContext) {
		const file = "/var/run/secrets/vault/token"
		p := pod(newNamespace(ctx, red), "client", busybox, "sleep", "3600")
		p.Spec.Volumes = []corev1.Volume{{Name: "vault", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: "vault", ExpirationSeconds: new(int64(600)), Path: "token",
			}}},
		}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "vault", MountPath: filepath.Dir(file)}}
		create(ctx, red, p)
		shouldBeReady(ctx, red, p)
		as := kubectlOf(ctx, red)
		token, err := as.in(ctx, p, "cat", file)
		Expect(err).NotTo(HaveOccurred())
		Expect(claimsIn(token)).To(And(HaveField("Audience", ConsistOf("vault")), HaveField("Issuer", issuerOf(ctx, red))))
		Expect(knows(ctx, red.Client, token)).To(BeTrue())
		Expect(knows(ctx, blue.Client, token)).To(BeFalse(), "it is red's")
		Expect(knows(ctx, super.Client, token)).To(BeFalse(), "it is none of the super cluster's")

		// A test cannot wait for the renewal. The deletion of the Secret also
		// makes the syncer issue a new token.
		kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: red.Super(p.Namespace), Name: names.TokenSecret(p.Name)}}
		Expect(super.Client.Delete(ctx, kept)).To(Succeed())
		Eventually(super.Client.Get).WithContext(ctx).WithArguments(client.ObjectKeyFromObject(kept), kept).Should(Succeed())
		was := p.DeepCopy()
		p.Labels["look"] = "again" // a kubelet looks once a minute, or when a pod changes
		Expect(red.Client.Patch(ctx, p, client.MergeFrom(was))).To(Succeed())
		Eventually(as.in).WithContext(ctx).WithTimeout(2*soon).WithArguments(p, "cat", file).
			Should(And(Not(Equal(token)), WithTransform(claimsIn, HaveField("Audience", ConsistOf("vault")))))
	})
})

// Kubelets usually read the Secret with a pod's tokens before the syncer has
// created it, and report that in the super cluster.
var _ = It("The events of a pod say nothing of the Secret with its tokens", func(ctx SpecContext) {
	const several = 10
	ns := newNamespace(ctx, red)
	pods := make([]*corev1.Pod, several)
	for i := range pods {
		pods[i] = pod(ns, fmt.Sprintf("client-%d", i), busybox, "sleep", "3600")
		create(ctx, red, pods[i])
	}
	for _, p := range pods {
		shouldBeReady(ctx, red, p)
	}
	told := &corev1.EventList{}
	Expect(red.Client.List(ctx, told, client.InNamespace(ns))).To(Succeed())
	Expect(told.Items).To(ContainElement(HaveField("Reason", "Started")))
	var failed []string
	for _, event := range told.Items {
		if event.Reason == "FailedMount" {
			failed = append(failed, event.Message)
		}
	}
	Expect(failed).To(BeEmpty())
})

// claims are what a token says.
type claims struct {
	Issuer   string   `json:"iss"`
	Audience []string `json:"aud"`
}

func claimsIn(token string) (claims, error) {
	said := claims{}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return said, fmt.Errorf("a token has three parts, and this %d", len(parts))
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return said, err
	}
	return said, json.Unmarshal(data, &said)
}

// issuerOf is who a tenant's apiserver says that it is in tokens.
func issuerOf(ctx context.Context, t *local.Tenant) string {
	GinkgoHelper()
	clients, err := kubernetes.NewForConfig(t.Config)
	Expect(err).NotTo(HaveOccurred())
	data, err := clients.RESTClient().Get().AbsPath("/.well-known/openid-configuration").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	about := struct {
		Issuer string `json:"issuer"`
	}{}
	Expect(json.Unmarshal(data, &about)).To(Succeed())
	Expect(about.Issuer).NotTo(BeEmpty())
	return about.Issuer
}

// knows reports whether an apiserver takes a token for one that is meant for
// the vault.
func knows(ctx context.Context, c client.Client, token string) bool {
	GinkgoHelper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"vault"}}}
	Expect(c.Create(ctx, review)).To(Succeed())
	return review.Status.Authenticated
}

// logs are what a pod of the super cluster has written.
func logs(ns, name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c, err := kubernetes.NewForConfig(super.Config)
		if err != nil {
			return "", err
		}
		stream, err := c.CoreV1().Pods(ns).GetLogs(name, &corev1.PodLogOptions{}).Stream(ctx)
		if err != nil {
			return "", err
		}
		defer stream.Close()
		var text bytes.Buffer
		_, err = io.Copy(&text, stream)
		return text.String(), err
	}
}

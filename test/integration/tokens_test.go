package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("A service account's token in a pod", Ordered, func() {
	const ns = "tokens"
	var red *local.Tenant
	web := kit.Pod(ns, "web")

	BeforeAll(func(ctx SpecContext) {
		red = tenant(ctx)
		kit.Create(ctx, red.Client, kit.Namespace(ns))
		web.Spec.Volumes = []corev1.Volume{{Name: "vault", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
				Audience: "vault", ExpirationSeconds: new(int64(600)), Path: "token",
			}}},
		}}}}
		kit.Create(ctx, red.Client, web)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, web))
	})

	// kept returns the tokens that the pod's copy reads, by audience.
	kept := func(ctx context.Context) map[string]string {
		tokens := map[string]string{}
		down := kit.SuperOf(red, web)
		if kit.Get(ctx, super.Client, down) != nil {
			return tokens
		}
		for _, v := range down.Spec.Volumes {
			for _, source := range v.Projected.Sources {
				if source.Secret == nil || source.Secret.Name != names.TokenSecret(web.Name) {
					continue
				}
				s := secret(down.Namespace, source.Secret.Name, nil)
				if kit.Get(ctx, super.Client, s) == nil {
					tokens[v.Name] = string(s.Data[source.Secret.Items[0].Key])
				}
			}
		}
		return tokens
	}
	// who returns the user that the tenant's apiserver authenticates with a
	// token.
	who := func(ctx context.Context, token string) (string, error) {
		config := rest.AnonymousClientConfig(red.Config)
		config.BearerToken = token
		c, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		review := &authenticationv1.SelfSubjectReview{}
		err = c.Create(ctx, review)
		return review.Status.UserInfo.Username, err
	}
	apiserver := func(tokens map[string]string) string {
		for volume, token := range tokens {
			if volume != "vault" {
				return token
			}
		}
		return ""
	}

	It("is issued by the tenant's apiserver, bound to the pod, for the audience that the pod requests", func(ctx SpecContext) {
		Eventually(kept).WithContext(ctx).Should(HaveLen(2))
		tokens := kept(ctx)
		Expect(who(ctx, apiserver(tokens))).To(Equal("system:serviceaccount:" + ns + ":default"))
		_, err := who(ctx, tokens["vault"])
		Expect(err).To(MatchError(apierrors.IsUnauthorized, "unauthorized"))
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: tokens["vault"], Audiences: []string{"vault"}}}
		kit.Create(ctx, red.Client, review)
		Expect(review.Status.Authenticated).To(BeTrue())
		Expect(review.Status.User.Extra).To(HaveKeyWithValue(
			"authentication.kubernetes.io/pod-uid", authenticationv1.ExtraValue{string(web.UID)}))
		Expect(kit.Get(ctx, red.Client, web)).To(Succeed())
		Expect(review.Status.User.Extra).To(HaveKeyWithValue(
			"authentication.kubernetes.io/node-name", authenticationv1.ExtraValue{web.Spec.NodeName}))
	})

	It("is not valid in the super cluster, and is stored only in its Secret", func(ctx SpecContext) {
		for _, token := range kept(ctx) {
			config := rest.AnonymousClientConfig(super.Config)
			config.BearerToken = token
			c, err := client.New(config, client.Options{})
			Expect(err).NotTo(HaveOccurred())
			Expect(c.Create(ctx, &authenticationv1.SelfSubjectReview{})).To(MatchError(apierrors.IsUnauthorized, "unauthorized"))
		}
		s := secret(red.Super(ns), names.TokenSecret(web.Name), nil)
		kit.ShouldExist(ctx, super.Client, s)
		for _, shown := range slices.Concat(slices.Collect(maps.Values(s.Annotations)), slices.Collect(maps.Values(s.Labels))) {
			for _, token := range s.Data {
				Expect(shown).NotTo(ContainSubstring(string(token)))
			}
		}
	})

	It("causes no event in the tenant if a kubelet reads it too early", func(ctx SpecContext) {
		const (
			failed = `MountVolume.SetUp failed for volume "v" : `
			noMap  = `configmap "settings" not found`
		)
		noTokens := fmt.Sprintf(`secret "%s" not found`, names.TokenSecret(web.Name))
		copied := kit.SuperOf(red, web)
		Expect(kit.Get(ctx, super.Client, copied)).To(Succeed())
		for i, message := range []string{noTokens, "[" + noTokens + ", " + noMap + "]", noMap} {
			kit.Create(ctx, super.Client, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: copied.Namespace, Name: fmt.Sprintf("web.%d", i)},
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: copied.Namespace, Name: copied.Name, UID: copied.UID},
				Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: failed + message,
				Source: corev1.EventSource{Component: "kubelet"}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
			})
		}
		told := kit.Events(ctx, red, web, "FailedMount")
		Eventually(told).Should(ConsistOf(failed+noMap, failed+noMap))
		Consistently(told).Should(HaveLen(2))
	})

	It("is renewed in time", func(ctx SpecContext) {
		s := secret(red.Super(ns), names.TokenSecret(web.Name), nil)
		kit.ShouldExist(ctx, super.Client, s)
		due, err := time.Parse(time.RFC3339, s.Annotations[names.TokensRenewal])
		Expect(err).NotTo(HaveOccurred())
		// The token for the vault is valid for ten minutes, the shorter of the
		// two.
		Expect(time.Until(due)).To(And(BeNumerically(">", 5*time.Minute), BeNumerically("<", 8*time.Minute)))

		useSyncer(account, func(o *app.Options) { o.Patrol = time.Second })
		was := s.Data
		kit.Edit(ctx, super.Client, s, func(s *corev1.Secret) {
			s.Annotations[names.TokensRenewal] = time.Now().Add(-time.Minute).Format(time.RFC3339)
		})
		Eventually(kit.Read(ctx, super.Client, s)).Should(HaveField("Data", Not(Equal(was))))
		Expect(who(ctx, apiserver(kept(ctx)))).To(Equal("system:serviceaccount:" + ns + ":default"))
	})

	It("is restored when its Secret is deleted", func(ctx SpecContext) {
		s := secret(red.Super(ns), names.TokenSecret(web.Name), nil)
		Expect(super.Client.Delete(ctx, s)).To(Succeed())
		Eventually(kept).WithContext(ctx).Should(HaveLen(2))
	})

	It("is requested again when its service account, whose absence is reported, exists again", func(ctx SpecContext) {
		robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "robot"}}
		kit.Create(ctx, red.Client, robot)
		node := bareNode(ctx)
		p := kit.Pod(ns, "late", onNode(node), func(p *corev1.Pod) { p.Spec.ServiceAccountName = robot.Name })
		kit.Edit(ctx, super.Client, node, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		kit.Create(ctx, red.Client, p)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, p))
		Expect(red.Client.Delete(ctx, robot)).To(Succeed())
		kit.Edit(ctx, super.Client, node, func(n *corev1.Node) { n.Spec.Unschedulable = false })
		Eventually(kit.Events(ctx, red, p, "SyncBlocked")).WithTimeout(2 * kit.Soon).
			Should(ConsistOf("blocked on ServiceAccount robot, which does not exist or is not synced yet"))
		kit.Create(ctx, red.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: robot.Name}})
		kit.ShouldExist(ctx, super.Client, secret(red.Super(ns), names.TokenSecret(p.Name), nil))
	})

	It("is invalidated with the pod, and its Secret deleted, even without a running syncer", func(ctx SpecContext) {
		token := apiserver(kept(ctx))
		Expect(red.Client.Delete(ctx, web, client.GracePeriodSeconds(0))).To(Succeed())
		kit.ShouldVanish(ctx, super.Client, secret(red.Super(ns), names.TokenSecret(web.Name), nil))
		Eventually(func() error { _, err := who(ctx, token); return err }).Should(MatchError(apierrors.IsUnauthorized, "unauthorized"))

		gone := kit.Pod(ns, "gone")
		kit.Create(ctx, red.Client, gone)
		left := secret(red.Super(ns), names.TokenSecret(gone.Name), nil)
		kit.ShouldExist(ctx, super.Client, left)
		whileStopped(func() {
			Expect(super.Client.Delete(ctx, kit.SuperOf(red, gone), client.GracePeriodSeconds(0))).To(Succeed())
			Expect(red.Client.Delete(ctx, gone, client.GracePeriodSeconds(0))).To(Succeed())
		})
		kit.ShouldVanish(ctx, super.Client, left)
	})

	It("is not requested for a pod without one", func(ctx SpecContext) {
		bare := kit.Pod(ns, "bare")
		bare.Spec.AutomountServiceAccountToken = new(false)
		kit.Create(ctx, red.Client, bare)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(red, bare))
		Expect(kit.Get(ctx, super.Client, secret(red.Super(ns), names.TokenSecret(bare.Name), nil))).
			To(MatchError(apierrors.IsNotFound, "not found"))
	})
})

package escapes

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	gateway "github.com/virtualcluster/virtualcluster/gateway/app"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("The gateway and tokens of the super cluster", Ordered, ContinueOnFailure, func() {
	const (
		marker = "/marker"
		domain = "tenants.example.org"
	)
	var (
		far       *local.Tenant
		apiserver *local.Hostile
		// doors have gateways whose users of the super cluster are none, those of
		// projects, and all.
		doors map[string]kit.Door
	)

	// with finds requests with credentials, wherever these are.
	with := func(secret string) local.Match {
		return func(r *http.Request) bool {
			return strings.Contains(fmt.Sprint(r.Header, r.URL), secret) ||
				strings.Contains(fmt.Sprint(r.Header), base64.RawURLEncoding.EncodeToString([]byte(secret)))
		}
	}

	BeforeAll(func(ctx SpecContext) {
		victim := tenant(ctx)
		far, apiserver = hostileTenant(ctx)
		doors = map[string]kit.Door{}
		for name, change := range map[string]func(*gateway.Options){
			"none":        func(*gateway.Options) {},
			"of projects": func(o *gateway.Options) { o.Projects = true },
			"all":         func(o *gateway.Options) { o.SuperCluster = gateway.Tokens },
		} {
			doors[name] = kit.StartGateway(ctx, super, victim, change, func(o *gateway.Options) {
				o.External, o.Domain, o.DefaultTenant = []string{"127.0.0.0/8"}, domain, client.ObjectKeyFromObject(far.VC)
			})
		}
	})

	attack("the token of a user of the super cluster, by a control plane that its owner runs", "review: members of External tenants",
		func(ctx SpecContext) {
			token := superToken(ctx)
			encoded := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(token))
			for name, door := range doors {
				shouldKnow(ctx, door, far)
				for _, path := range []string{"/tenants/" + far.Key() + marker, "/marker?project=" + far.Key(), marker} {
					for _, headers := range [][]string{
						{"Authorization", "Bearer " + token}, {"Authorization", " bearer  " + token + " "},
						{"Authorization", "Bearer other " + token}, {"Authorization", token}, {"Authorization", "Token " + token},
						{"Sec-WebSocket-Protocol", "v4.channel.k8s.io, " + encoded}, {"Sec-WebSocket-Protocol", "B" + encoded[1:]},
						{"Authorization", "Bearer other", "Sec-WebSocket-Protocol", encoded},
					} {
						reply := door.Ask(ctx, nil, path, headers...)
						Expect(reply.Code).To(BeElementOf(http.StatusForbidden, http.StatusBadRequest), "users: %s, %s", name, path)
					}
				}
			}
			Expect(apiserver.Seen(with(foreignToken))).NotTo(BeZero(), "tokens of the tenant's own")
			Expect(apiserver.Seen(with(token))).To(BeZero())
		})

	attack("members of a tenant whose control plane its owner runs", "review: members of External tenants", func(ctx SpecContext) {
		vc := kit.VirtualCluster(func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Members = []tenancyv1alpha1.Member{{Kind: tenancyv1alpha1.MemberUser, Name: "jane"}}
		})
		kit.SetExternal(vc, far.VC.Spec.External.KubeconfigSecretName)
		Expect(super.Client.Create(ctx, vc)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
		changed := far.VC.DeepCopy()
		Expect(kit.Get(ctx, super.Client, changed)).To(Succeed())
		changed.Spec.Members = vc.Spec.Members
		Expect(super.Client.Update(ctx, changed)).To(MatchError(apierrors.IsInvalid, "IsInvalid"))
	})

	attack("requests of all with tokens from an address, by random ones", "review: the limit of an address is that of all behind it",
		func(ctx SpecContext) {
			door, token := doors["all"], superToken(ctx)
			honest := func() int {
				return door.Ask(ctx, nil, "/tenants/system/version", "Authorization", "Bearer "+token).Code
			}
			Expect(honest()).To(Equal(http.StatusOK))
			flooding, stop := context.WithCancel(ctx)
			var flood sync.WaitGroup
			DeferCleanup(func() {
				stop()
				flood.Wait()
			})
			limited := make(chan struct{})
			flood.Go(func() {
				defer GinkgoRecover()
				requester := &http.Client{Transport: &http.Transport{TLSClientConfig: door.TLS}}
				defer requester.CloseIdleConnections()
				once := sync.OnceFunc(func() { close(limited) })
				for i := 0; flooding.Err() == nil; i++ {
					reply, err := local.Ask(flooding, requester, door.Address, "/tenants/system/version", "Authorization", fmt.Sprint("Bearer random-", i))
					if err == nil && reply.Code == http.StatusTooManyRequests {
						once()
					}
				}
			})
			Eventually(ctx, limited).WithTimeout(kit.Soon).Should(BeClosed())
			// An answer of the super cluster is kept for a shorter time.
			Consistently(ctx, honest).WithTimeout(12 * time.Second).WithPolling(200 * time.Millisecond).Should(Equal(http.StatusOK))
		})
})

// superToken returns a token of the super cluster.
func superToken(ctx context.Context) string {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}
	config, err := super.AccountConfig(ctx, account)
	Expect(err).NotTo(HaveOccurred())
	return config.BearerToken
}

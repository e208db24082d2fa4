package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

// claims are what others read in a token.
type claims struct {
	KeyID    string   `json:"kid"`
	Issuer   string   `json:"iss"`
	Audience []string `json:"aud"`
}

// claimsOf returns the claims in a token, and the key in its header.
func claimsOf(token string) claims {
	GinkgoHelper()
	var read claims
	for _, part := range strings.Split(token, ".")[:2] {
		Expect(json.Unmarshal(must(base64.RawURLEncoding.DecodeString(part)), &read)).To(Succeed())
	}
	return read
}

// webKey is a public key of an issuer.
type webKey struct {
	ID    string `json:"kid"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	Y     string `json:"y"`
	D     string `json:"d"` // of a private key
}

// verifies reports whether a key has signed a token, as others find out.
func (k webKey) verifies(token string) bool {
	GinkgoHelper()
	decode := func(text string) []byte { return must(base64.RawURLEncoding.DecodeString(text)) }
	Expect(k.Curve).To(Equal("P-256"))
	public := must(ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append([]byte{4}, append(decode(k.X), decode(k.Y)...)...)))
	end := strings.LastIndex(token, ".")
	digest, signature := sha256.Sum256([]byte(token[:end])), decode(token[end+1:])
	half := len(signature) / 2
	return ecdsa.Verify(public, digest[:], new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
}

var _ = Describe("The issuer of a tenant's tokens", Ordered, func() {
	const configuration, keys = "/.well-known/openid-configuration", "/openid/v1/jwks"

	It("is public at the gateway if the VirtualCluster has one, and no other", func(ctx SpecContext) {
		red, blue := tenant(ctx), tenant(ctx)
		through(ctx, blue)
		door := kit.DoorOf(through(ctx, red).Config)
		at := "/tenants/" + red.Key()
		for _, path := range []string{at + configuration, at + keys} {
			Expect(door.Ask(ctx, nil, path).Code).To(Equal(http.StatusForbidden), "by default, it shows nothing")
		}
		before := tokenOf(ctx, red)
		Expect(claimsOf(before).Issuer).To(Equal("https://kubernetes.default.svc.cluster.local"))

		issuer := "https://" + door.Address + at
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ServiceAccountIssuer: issuer}
		})
		Eventually(func() int { return door.Ask(ctx, nil, at+configuration).Code }).WithTimeout(3 * kit.Soon).Should(Equal(http.StatusOK))
		var described struct {
			Issuer string `json:"issuer"`
			Keys   string `json:"jwks_uri"`
		}
		Expect(json.Unmarshal([]byte(door.Ask(ctx, nil, at+configuration).Body), &described)).To(Succeed())
		Expect(described.Issuer).To(Equal(issuer))
		Expect(described.Keys).To(Equal(issuer + keys))
		var set struct {
			Keys []webKey `json:"keys"`
		}
		Expect(json.Unmarshal([]byte(door.Ask(ctx, nil, at+keys).Body), &set)).To(Succeed())
		Expect(set.Keys).To(HaveLen(1))
		Expect(set.Keys[0].D).To(BeEmpty(), "a private key")

		By("with tokens for others and for the apiserver")
		var outside string
		Eventually(func() error {
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"sts.example.com"}}}
			made, err := clientset(red).CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", request, metav1.CreateOptions{})
			outside = made.Status.Token
			return err
		}).WithTimeout(2 * kit.Soon).Should(Succeed())
		Expect(claimsOf(outside)).To(Equal(claims{KeyID: set.Keys[0].ID, Issuer: issuer, Audience: []string{"sts.example.com"}}))
		Expect(set.Keys[0].verifies(outside)).To(BeTrue())
		Expect(set.Keys[0].verifies(tokenOf(ctx, blue))).To(BeFalse(), "of another tenant")
		own := tokenOf(ctx, red)
		Expect(claimsOf(own).Issuer).To(Equal(issuer))
		for token, want := range map[string]int{own: http.StatusOK, before: http.StatusOK, outside: http.StatusUnauthorized} {
			Eventually(func() int { return door.Ask(ctx, nil, "/api", "Authorization", "Bearer "+token).Code }).
				WithTimeout(kit.Soon).Should(Equal(want))
		}

		By("and nothing else of it, and nothing of another tenant")
		for _, path := range []string{
			at + "/openid/v1", at + "/.well-known/", at + "/api", configuration, keys, "/tenants/" + blue.Key() + configuration, "/tenants/nobody" + keys,
			"/tenants/system" + configuration,
		} {
			Expect(door.Ask(ctx, nil, path).Code).To(Equal(http.StatusForbidden), path)
		}

		By("until the spec changes, also while the control plane sleeps")
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) {
			sleeping(vc)
			vc.Spec.ControlPlane.ServiceAccountIssuer = issuer
		})
		shouldSleep(ctx, red)
		Expect(door.Ask(ctx, nil, at+keys).Code).To(Equal(http.StatusOK))
		Consistently(kit.Read(ctx, super.Client, red.VC)).WithTimeout(2*time.Second).
			Should(HaveField("Status.Phase", tenancyv1alpha1.PhaseAsleep), "a document wakes it")
		changeVC(ctx, red, func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.ControlPlane.ServiceAccountIssuer = "" })
		Eventually(func() int { return door.Ask(ctx, nil, at+keys).Code }).WithTimeout(kit.Soon).Should(Equal(http.StatusForbidden))
		// The first request may be answered before the control plane has stopped.
		Eventually(func() int { return door.Ask(ctx, nil, "/api", "Authorization", "Bearer "+own).Code }).
			WithTimeout(2*kit.Soon).Should(Equal(http.StatusUnauthorized), "the issuer is another again")
		Expect(door.Ask(ctx, nil, "/api", "Authorization", "Bearer "+before).Code).To(Equal(http.StatusOK))
	}, SpecTimeout(kit.Longest))
})

package chain_test

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

const (
	robotUser = "system:serviceaccount:" + namespace + ":" + robot
	hour      = int64(3600)
)

var forever = authenticationv1.TokenRequestSpec{ExpirationSeconds: new(hour)}

// copyServiceAccount gives blue the service account of red, with its UID. The
// API does not, but a template of tenants can.
func copyServiceAccount(t *testing.T, all *clientv3.Client, red, blue *cluster) {
	t.Helper()
	g := NewWithT(t)
	key := "/serviceaccounts/" + namespace + "/" + robot
	found, err := all.Get(t.Context(), keyspace.Prefix(red.name)+key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Kvs).To(HaveLen(1))
	_, err = all.Put(t.Context(), keyspace.Prefix(blue.name)+key, string(found.Kvs[0].Value))
	g.Expect(err).NotTo(HaveOccurred())
}

// TestTokensOfOthers: a token is valid for the tenant that issued it, even if
// all that it names exists in another one.
func TestTokensOfOthers(t *testing.T) {
	g := NewWithT(t)
	red, blue, all := newClusters(t)
	copyServiceAccount(t, all, red, blue)
	tokens := map[*cluster]string{red: red.token(t, forever).Status.Token, blue: blue.token(t, forever).Status.Token}
	for range 3 { // the second time from the caches
		for of, token := range tokens {
			for _, in := range []*cluster{red, blue} {
				user, err := in.whoAmI(t.Context(), bearer(token))
				if of == in {
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(user.Username).To(Equal(robotUser))
					continue
				}
				g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "token of %s in %s: %v", of.name, in.name, err)
			}
		}
	}
	g.Expect(claimsOf(t, tokens[red])["kubernetes.io"]).To(Equal(claimsOf(t, tokens[blue])["kubernetes.io"]))
}

func claimsOf(t testing.TB, token string) map[string]any {
	t.Helper()
	claims := map[string]any{}
	NewWithT(t).Expect(json.Unmarshal(partOf(t, token, 1), &claims)).To(Succeed())
	return claims
}

func partOf(t testing.TB, token string, part int) []byte {
	t.Helper()
	parts := strings.Split(token, ".")
	g := NewWithT(t)
	g.Expect(parts).To(HaveLen(3))
	decoded, err := base64.RawURLEncoding.DecodeString(parts[part])
	g.Expect(err).NotTo(HaveOccurred())
	return decoded
}

func keyIDOf(t testing.TB, token string) string {
	t.Helper()
	var header struct {
		KeyID string `json:"kid"`
	}
	NewWithT(t).Expect(json.Unmarshal(partOf(t, token, 0), &header)).To(Succeed())
	return header.KeyID
}

// forge signs claims with any key, algorithm and key ID.
func forge(t testing.TB, algorithm jose.SignatureAlgorithm, key any, keyID string, claims map[string]any) string {
	t.Helper()
	g := NewWithT(t)
	if pem, ok := key.([]byte); ok && algorithm == jose.ES256 {
		var err error
		key, err = keyutil.ParsePrivateKeyPEM(pem)
		g.Expect(err).NotTo(HaveOccurred())
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: keyID}}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	token, err := jwt.Signed(signer).Claims(claims).CompactSerialize()
	g.Expect(err).NotTo(HaveOccurred())
	return token
}

// unsigned returns a token of the algorithm "none".
func unsigned(t testing.TB, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + "."
}

// TestForgedTokens sends tokens that nearly are valid ones of red.
func TestForgedTokens(t *testing.T) {
	red, blue, _ := newClusters(t)
	honest := red.token(t, forever).Status.Token
	keyID, claims := keyIDOf(t, honest), claimsOf(t, honest)
	with := func(changes map[string]any) map[string]any {
		changed := maps.Clone(claims)
		maps.Copy(changed, changes)
		return changed
	}
	bound := func(changes map[string]any) map[string]any {
		private := maps.Clone(claims["kubernetes.io"].(map[string]any))
		maps.Copy(private, changes)
		return with(map[string]any{"kubernetes.io": private})
	}
	signed := func(changed map[string]any) string { return forge(t, jose.ES256, red.key, keyID, changed) }
	hoursAgo := func(hours int) int64 { return time.Now().Add(-time.Duration(hours) * time.Hour).Unix() }
	tests := map[string]string{
		"signed by another tenant":                   forge(t, jose.ES256, blue.key, keyIDOf(t, blue.token(t, forever).Status.Token), claims),
		"signed by another tenant, with this key ID": forge(t, jose.ES256, blue.key, keyID, claims),
		"not signed":                                     unsigned(t, claims),
		"signature removed":                              honest[:strings.LastIndex(honest, ".")+1],
		"signed with the public key as a secret":         forge(t, jose.HS256, red.public, keyID, claims),
		"expired":                                        signed(with(map[string]any{"iat": hoursAgo(3), "nbf": hoursAgo(3), "exp": hoursAgo(2)})),
		"not valid yet":                                  signed(with(map[string]any{"nbf": hoursAgo(-1), "exp": hoursAgo(-2)})),
		"audience of something else":                     signed(with(map[string]any{"aud": []string{"vault"}})),
		"audience of another domain":                     signed(with(map[string]any{"aud": []string{issuer + ".other"}})),
		"issuer of another domain":                       signed(with(map[string]any{"iss": issuer + ".other"})),
		"placeholder of the shared apiserver as issuer":  signed(with(map[string]any{"iss": "https://placeholder.internal", "aud": []string{"https://placeholder.internal"}})),
		"legacy issuer, without a Secret":                signed(with(map[string]any{"iss": serviceaccount.LegacyIssuer, "sub": robotUser})),
		"service account that does not exist":            signed(bound(map[string]any{"serviceaccount": map[string]any{"name": "none", "uid": "1"}})),
		"service account with another UID":               signed(bound(map[string]any{"serviceaccount": map[string]any{"name": robot, "uid": "1"}})),
		"namespace that does not exist":                  signed(bound(map[string]any{"namespace": "none"})),
		"pod that does not exist":                        signed(bound(map[string]any{"pod": map[string]any{"name": "none", "uid": "1"}})),
		"Secret that does not exist":                     signed(bound(map[string]any{"secret": map[string]any{"name": "none", "uid": "1"}})),
		"node that does not exist":                       signed(bound(map[string]any{"node": map[string]any{"name": "none", "uid": "1"}})),
		"name that leaves the namespace":                 signed(bound(map[string]any{"serviceaccount": map[string]any{"name": "../team/" + robot, "uid": "1"}})),
		"namespace that leaves the prefix of the tenant": signed(bound(map[string]any{"namespace": "../../blue/serviceaccounts/" + namespace})),
	}
	for name, token := range tests {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				_, err := red.whoAmI(t.Context(), bearer(token))
				NewWithT(t).Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
			}
		})
	}
	t.Run("control", func(t *testing.T) {
		_, err := red.whoAmI(t.Context(), bearer(signed(claims)))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
}

// boundObject is an object to which a token can be bound.
type boundObject struct {
	create func(testing.TB, *cluster) metav1.Object
	remove func(testing.TB, *cluster) error
}

func boundObjects() map[string]boundObject {
	meta := metav1.ObjectMeta{Name: "bound"}
	return map[string]boundObject{
		"Pod": {
			func(t testing.TB, c *cluster) metav1.Object { return c.create(t, podOf(robot)) },
			func(t testing.TB, c *cluster) error {
				return c.admin.CoreV1().Pods(namespace).Delete(t.Context(), "bound", metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
			},
		},
		"Secret": {
			func(t testing.TB, c *cluster) metav1.Object { return c.create(t, &corev1.Secret{ObjectMeta: meta}) },
			func(t testing.TB, c *cluster) error {
				return c.admin.CoreV1().Secrets(namespace).Delete(t.Context(), "bound", metav1.DeleteOptions{})
			},
		},
		"Node": {
			func(t testing.TB, c *cluster) metav1.Object { return c.create(t, &corev1.Node{ObjectMeta: meta}) },
			func(t testing.TB, c *cluster) error {
				return c.admin.CoreV1().Nodes().Delete(t.Context(), "bound", metav1.DeleteOptions{})
			},
		},
	}
}

// TestBoundTokens: a token ends with the object to which it is bound.
func TestBoundTokens(t *testing.T) {
	t.Parallel()
	c, _ := startChain(t)
	red, blue := newCluster(t, c, "red"), newCluster(t, c, "blue")
	for kind, bound := range boundObjects() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // each one waits for the cache
			g := NewWithT(t)
			object := bound.create(t, red)
			bound.create(t, blue) // does not count
			spec := authenticationv1.TokenRequestSpec{ExpirationSeconds: new(hour), BoundObjectRef: &authenticationv1.BoundObjectReference{
				APIVersion: "v1", Kind: kind, Name: object.GetName(), UID: object.GetUID(),
			}}
			used, fresh := red.token(t, spec).Status.Token, red.token(t, spec).Status.Token
			_, err := red.whoAmI(t.Context(), bearer(used))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(bound.remove(t, red)).To(Succeed())
			_, err = red.whoAmI(t.Context(), bearer(fresh))
			g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
			g.Eventually(func() bool { // remembered for ten seconds
				_, err := red.whoAmI(t.Context(), bearer(used))
				return apierrors.IsUnauthorized(err)
			}, later).Should(BeTrue())
			_, err = red.admin.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), robot, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
			g.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		})
	}
}

func podOf(serviceAccount string) *corev1.Pod {
	created := pod()
	created.Name = "bound"
	created.Spec.ServiceAccountName, created.Spec.AutomountServiceAccountToken = serviceAccount, new(false)
	return created
}

// TestRecreatedServiceAccount: a service account of the same name is another
// one.
func TestRecreatedServiceAccount(t *testing.T) {
	g := NewWithT(t)
	red, _, _ := newClusters(t)
	first, second := red.token(t, forever).Status.Token, red.token(t, forever).Status.Token
	accounts := red.admin.CoreV1().ServiceAccounts(namespace)
	g.Expect(accounts.Delete(t.Context(), robot, metav1.DeleteOptions{})).To(Succeed())
	_, err := red.whoAmI(t.Context(), bearer(first))
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
	red.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: robot}})
	_, err = red.whoAmI(t.Context(), bearer(second))
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
}

// TestProjectedTokens: tokens that kubelets request for pods are as those of a
// stock apiserver.
func TestProjectedTokens(t *testing.T) {
	g := NewWithT(t)
	red, _, _ := newClusters(t)
	pod := red.create(t, podOf(robot))
	ref := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.GetName(), UID: pod.GetUID()}
	lifetime := func(token string) time.Duration {
		claims := claimsOf(t, token)
		return time.Duration((claims["exp"].(float64) - claims["iat"].(float64)) * float64(time.Second))
	}

	// Kubelets request 3607 seconds. Old clients do not renew such tokens, so
	// they live for a year, and their use after an hour is a warning.
	projected := red.token(t, authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(serviceaccount.WarnOnlyBoundTokenExpirationSeconds)), BoundObjectRef: ref,
	})
	g.Expect(projected.Spec.Audiences).To(ConsistOf(issuer))
	g.Expect(projected.Status.ExpirationTimestamp.Time).To(BeTemporally("~", time.Now().Add(time.Hour), time.Minute))
	g.Expect(lifetime(projected.Status.Token)).To(Equal(serviceaccount.ExpirationExtensionSeconds * time.Second))
	g.Expect(claimsOf(t, projected.Status.Token)).To(HaveKeyWithValue("iss", issuer))
	user, err := red.whoAmI(t.Context(), bearer(projected.Status.Token))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.Extra).To(HaveKeyWithValue("authentication.kubernetes.io/pod-uid", ConsistOf(string(pod.GetUID()))))

	// A token for something else is not extended, and not valid here.
	other := red.token(t, authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(serviceaccount.WarnOnlyBoundTokenExpirationSeconds)), BoundObjectRef: ref, Audiences: []string{"vault"},
	})
	g.Expect(lifetime(other.Status.Token)).To(Equal(serviceaccount.WarnOnlyBoundTokenExpirationSeconds * time.Second))
	_, err = red.whoAmI(t.Context(), bearer(other.Status.Token))
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
}

// TestDomains: tenants with different domains are different issuers.
func TestDomains(t *testing.T) {
	g := NewWithT(t)
	c, _ := newChain(t)
	key, _, err := pki.NewSigningKey()
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"one", "two"} {
		_, client := addSpec(t, c, name, key)
		createNamespace(t, client, namespace)
		_, err := client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: robot}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), robot, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		want := "https://kubernetes.default.svc." + name + ".test"
		g.Expect(claimsOf(t, token.Status.Token)).To(And(HaveKeyWithValue("iss", want), HaveKeyWithValue("aud", ConsistOf(want))))
	}
}

// TestLegacyTokens authenticates with the token of a Secret.
func TestLegacyTokens(t *testing.T) {
	t.Parallel() // it waits for the cache
	g := NewWithT(t)
	c, all := startChain(t)
	red, blue := newCluster(t, c, "red"), newCluster(t, c, "blue")
	copyServiceAccount(t, all, red, blue)
	account, err := red.admin.CoreV1().ServiceAccounts(namespace).Get(t.Context(), robot, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	key, err := keyutil.ParsePrivateKeyPEM(red.key)
	g.Expect(err).NotTo(HaveOccurred())
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	g.Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "legacy", Annotations: map[string]string{corev1.ServiceAccountNameKey: robot, corev1.ServiceAccountUIDKey: string(account.UID)},
	}, Type: corev1.SecretTypeServiceAccountToken}
	token, err := generator.GenerateToken(t.Context(), legacyClaims(account, secret), legacyPrivate(account, secret))
	g.Expect(err).NotTo(HaveOccurred())
	secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte(token)}
	red.create(t, secret.DeepCopy())
	blue.create(t, secret.DeepCopy())

	user, err := red.whoAmI(t.Context(), bearer(token))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.Username).To(Equal(robotUser))
	_, err = blue.whoAmI(t.Context(), bearer(token))
	g.Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
	for _, each := range []*cluster{red, blue} { // the use is recorded where it was
		found, err := each.admin.CoreV1().Secrets(namespace).Get(t.Context(), "legacy", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		if each == red {
			g.Expect(found.Labels).To(HaveKey(serviceaccount.LastUsedLabelKey))
		} else {
			g.Expect(found.Labels).NotTo(HaveKey(serviceaccount.LastUsedLabelKey))
		}
	}
	g.Expect(red.admin.CoreV1().Secrets(namespace).Delete(t.Context(), "legacy", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() bool { // remembered for ten seconds
		_, err := red.whoAmI(t.Context(), bearer(token))
		return apierrors.IsUnauthorized(err)
	}, later).Should(BeTrue())
}

func legacyClaims(account *corev1.ServiceAccount, secret *corev1.Secret) *jwt.Claims {
	claims, _ := serviceaccount.LegacyClaims(*account, *secret)
	return claims
}

func legacyPrivate(account *corev1.ServiceAccount, secret *corev1.Secret) any {
	_, private := serviceaccount.LegacyClaims(*account, *secret)
	return private
}

// FuzzTokens sends anything as the token of a request.
func FuzzTokens(f *testing.F) {
	red, _, _ := newClusters(f)
	honest := red.token(f, forever).Status.Token
	f.Add("", "")
	f.Add(honest, "x")
	f.Add(strings.ToUpper(honest), "Bearer")
	f.Add(unsigned(f, claimsOf(f, honest)), "")
	f.Add("{}", "..")
	f.Fuzz(func(t *testing.T, token, more string) {
		g := NewWithT(t)
		if token+more == honest {
			t.Skip()
		}
		review, err := red.admin.AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token + more}}, metav1.CreateOptions{})
		if err != nil {
			g.Expect(apierrors.IsInternalError(err)).To(BeFalse(), "%v", err)
			return
		}
		g.Expect(review.Status.User.Username).To(Or(BeEmpty(), Equal("system:anonymous")))
	})
}

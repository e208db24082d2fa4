package escapes

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/rbac"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// mastersGroup makes a user admin of a control plane.
const mastersGroup = "system:masters"

var _ = Describe("The gateway", Ordered, ContinueOnFailure, func() {
	const (
		namespaces = "/api/v1/namespaces"
		marker     = namespaces + "/default/configmaps/marker"
	)
	var (
		mallory, victim *local.Tenant
		door            kit.Door
		admin           tls.Certificate // mallory's
	)
	at := func(t *local.Tenant, path string) string { return "/tenants/" + t.Key() + path }
	bearer := func(token string, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + token}, more...)
	}

	BeforeAll(func(ctx SpecContext) {
		mallory, victim = tenant(ctx), tenant(ctx)
		kit.Through(ctx, super, victim)
		door = kit.DoorOf(kit.Through(ctx, super, mallory).Config)
		admin = kit.UserOf(super, mallory, "admin", time.Hour, mastersGroup)
		for _, t := range []*local.Tenant{mallory, victim} {
			kit.Create(ctx, t.Client, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "marker"}, Data: map[string]string{"of": t.Key()},
			})
		}
	})

	attack("paths that name two tenants, or that two programs read differently", "design: bad input of the gateway", func(ctx SpecContext) {
		for _, path := range []string{
			at(mallory, "/api/v1/tenants/"+victim.Key()+"/pods"), at(mallory, "/api?project="+victim.Key()), "//api", "/api/%00",
			at(mallory, "/../"+victim.Key()+namespaces), at(mallory, "/%2e%2e/"+victim.Key()+namespaces),
			"/tenants/" + mallory.Key() + "%2F..%2F" + victim.Key() + namespaces, "/%74enants/" + victim.Key() + namespaces,
		} {
			Expect(door.Ask(ctx, &admin, path).Code).To(Equal(http.StatusBadRequest), path)
		}
		Expect(door.Ask(ctx, &admin, at(mallory, namespaces), "X-Kubernetes-Project", victim.Key()).Code).To(Equal(http.StatusBadRequest))
	})

	attack("a list of the tenants, by trying names", "idea: responses that differ", func(ctx SpecContext) {
		response := func(certificate *tls.Certificate, name string) string {
			reply := door.Ask(ctx, certificate, "/tenants/"+name+namespaces)
			Expect(reply.Code).To(Equal(http.StatusForbidden))
			return strings.ReplaceAll(reply.Body, name, "NAME")
		}
		for _, certificate := range []*tls.Certificate{&admin, nil} {
			unknown := response(certificate, "nobody-here")
			Expect(response(certificate, victim.Key())).To(Equal(unknown))
			Expect(response(certificate, "system")).To(Equal(unknown))
		}
	})

	attack("another tenant's names in a certificate", "idea: a tenant's admin signs any name", func(ctx SpecContext) {
		forged := kit.UserOf(super, mallory, "admin", time.Hour, mastersGroup, victim.Key())
		Expect(door.Ask(ctx, &forged, marker).Body).To(ContainSubstring(mallory.Key()))
		Expect(door.Ask(ctx, &forged, at(victim, namespaces)).Code).To(Equal(http.StatusForbidden))
	})

	attack("a certificate of a CA with the same name", "idea: every CA of a control plane has one name", func(ctx SpecContext) {
		stranger, err := pki.NewAuthority("kubernetes", time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		pair, err := stranger.Client("admin", []string{mastersGroup}, time.Hour, time.Now())
		Expect(err).NotTo(HaveOccurred())
		unknown, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
		Expect(err).NotTo(HaveOccurred())
		Expect(door.Ask(ctx, &unknown, at(victim, namespaces)).Code).To(Equal(http.StatusUnauthorized))
	})

	attack("a token replayed to another tenant, and one with a forged signature", "idea: all tenants name one issuer", func(ctx SpecContext) {
		token := tokenOf(ctx, victim)
		Expect(door.Ask(ctx, nil, at(mallory, namespaces), bearer(token)...).Code).To(Equal(http.StatusForbidden))
		forged := token[:len(token)-8] + "AAAAAAAA"
		Expect(door.Ask(ctx, nil, namespaces, bearer(forged)...).Code).To(Equal(http.StatusUnauthorized))
	})

	attack("headers by which a proxy says who asks, in any spelling", "idea: headers of a trusted proxy", func(ctx SpecContext) {
		jane, token := kit.UserOf(super, mallory, "jane", time.Hour), tokenOf(ctx, mallory)
		for _, header := range []string{"X-Remote-User", "X-REMOTE-USER", "X_Remote_User"} {
			forged := []string{header, "admin", strings.Replace(header, "ser", "id", 1), "1", "X-Remote-Group", mastersGroup}
			reply := door.Ask(ctx, &jane, namespaces, forged...)
			Expect(reply.Code).To(Equal(http.StatusForbidden), header)
			Expect(reply.Body).To(ContainSubstring("jane"), header)
			Expect(door.Ask(ctx, nil, "/api/v1/secrets", bearer(token, forged...)...).Code).To(Equal(http.StatusForbidden), header)
		}
		reply := door.Ask(ctx, &jane, namespaces, "Connection", "X-Remote-User, X-Remote-Group, Authorization")
		Expect(reply.Body).To(ContainSubstring("jane"))
	})

	attack("a group that becomes system:masters in a header", "idea: spaces around a header are lost", func(ctx SpecContext) {
		for _, group := range []string{" " + mastersGroup, mastersGroup + " ", "\t" + mastersGroup} {
			padded := kit.UserOf(super, mallory, "jane", time.Hour, group)
			Expect(door.Ask(ctx, &padded, namespaces).Code).To(Equal(http.StatusUnauthorized))
		}
	})

	attack("a connection that outlives the certificate of its client", "idea: certificates are verified at the handshake", func(ctx SpecContext) {
		const validity = 15 * time.Second // longer than a busy machine takes for the first request
		connections := 0
		transport := &http.Transport{
			TLSClientConfig: door.As(kit.UserOf(super, mallory, "admin", validity, mastersGroup)), ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				connections++
				return (&net.Dialer{}).DialContext(ctx, network, address)
			},
		}
		defer transport.CloseIdleConnections()
		status := func() (int, error) {
			reply, err := local.Ask(ctx, &http.Client{Transport: transport}, door.Address, namespaces)
			return reply.Code, err
		}
		Expect(status()).To(Equal(http.StatusOK))
		Eventually(status).WithTimeout(validity + kit.Soon).WithPolling(100 * time.Millisecond).Should(Equal(http.StatusUnauthorized))
		Expect(connections).To(Equal(1))
	})

	attack("a Secret of the tenant with the name and the data of the gateway's", "idea: a copy in the super cluster has the name", func(ctx SpecContext) {
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: victim.Key(), Name: names.GatewaySecret}}
		Expect(kit.Get(ctx, super.Client, own)).To(Succeed())
		stolen := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: own.Name}, Data: maps.Clone(own.Data)}
		carrier := kit.Pod(metav1.NamespaceDefault, "carrier", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: own.Name}}}}
		})
		kit.Create(ctx, mallory.Client, stolen, carrier)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, stolen))
		theirs := kit.UserOf(super, victim, "admin", time.Hour, mastersGroup)
		Consistently(func() string { return door.Ask(ctx, &theirs, marker).Body }).WithTimeout(2 * time.Second).Should(ContainSubstring(victim.Key()))
	})

	attack("another CA of the gateway, by a Secret of the tenant with its name and the annotation", "idea: who rotates the CA", func(ctx SpecContext) {
		kit.StartGateway(ctx, super, victim)
		own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rbac.Namespace, Name: "vc-gateway-tls"}}
		Expect(kit.Get(ctx, super.Client, own)).To(Succeed())
		forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: own.Name, Annotations: map[string]string{names.RotateCA: "Start"},
		}}
		carrier := kit.Pod(metav1.NamespaceDefault, "carrier-of-a-ca", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: own.Name}}}}
		})
		kit.Create(ctx, mallory.Client, forged, carrier)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, forged))
		Consistently(kit.Read(ctx, super.Client, own)).WithTimeout(2 * time.Second).Should(HaveField("Data", Equal(own.Data)))
	})

	attack("false keys of a public issuer, by a Secret and by credentials of another tenant", "idea: who fills the documents", func(ctx SpecContext) {
		const keySet = "/openid/v1/jwks"
		issuer := "https://" + door.Address + at(victim, "")
		vc := victim.VC.DeepCopy()
		kit.Edit(ctx, super.Client, vc, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ServiceAccountIssuer: issuer}
		})
		document := func(path string) func() string {
			return func() string { return door.Ask(ctx, nil, at(victim, path)).Body }
		}
		Eventually(document("/.well-known/openid-configuration")).WithTimeout(3 * kit.Soon).Should(ContainSubstring(issuer))
		honest := document(keySet)()
		forged := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: names.GatewaySecret, Labels: names.OwnerLabels(vc), Annotations: names.OwnerAnnotations(vc),
			},
			Data: map[string][]byte{"jwks": []byte("forged"), "openid-configuration": []byte("forged")},
		}
		carrier := kit.Pod(metav1.NamespaceDefault, "carries-keys", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: forged.Name}}}}
		})
		Expect(client.IgnoreNotFound(mallory.Client.Delete(ctx, forged.DeepCopy()))).To(Succeed())
		kit.Create(ctx, mallory.Client, forged, carrier)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, forged))
		Consistently(document(keySet)).WithTimeout(2 * time.Second).Should(Equal(honest))
		Expect(door.Ask(ctx, &admin, at(victim, keySet), "X-Remote-User", "admin").Body).To(Equal(honest), "which everyone gets")
		Expect(door.Ask(ctx, &admin, at(mallory, keySet)).Body).NotTo(Equal(honest))
		Expect(door.Ask(ctx, nil, at(mallory, keySet)).Code).To(Equal(http.StatusForbidden), "an issuer that the platform has not made public")
		Expect(door.Ask(ctx, nil, keySet, "X-Kubernetes-Project", victim.Key(), "Host", "elsewhere.example.com").Body).To(Equal(honest))
	}, SpecTimeout(6*kit.Soon))

	attack("the certificate of the gateway, taken from a tenant's own control plane", "idea: what the gateway's certificate is good for", func(ctx SpecContext) {
		access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Key(), Name: names.GatewaySecret}}
		Expect(kit.Get(ctx, super.Client, access)).To(Succeed())
		own, err := tls.X509KeyPair(access.Data["tls.crt"], access.Data["tls.key"])
		Expect(err).NotTo(HaveOccurred())
		Expect(door.Ask(ctx, &own, at(victim, namespaces), "X-Remote-User", "admin").Code).To(Equal(http.StatusUnauthorized))
		keys := slices.Collect(maps.Keys(access.Data))
		Expect(keys).NotTo(ContainElement(ContainSubstring("kubeconfig")))
	})

	attack("requests that two servers read differently: headers twice, bytes that are no text, no path", "design: bad input of the gateway",
		func(ctx SpecContext) {
			own, theirs := tokenOf(ctx, mallory), tokenOf(ctx, victim)
			for _, c := range []struct {
				raw  string
				want int
			}{
				{"GET /tenants/" + victim.Key() + "\x00/api HTTP/1.1\r\nHost: gw\r\n\r\n", http.StatusBadRequest},
				{"GET /tenants/\xff/api HTTP/1.1\r\nHost: gw\r\n\r\n", http.StatusBadRequest},
				{"GET /api HTTP/1.1\r\nHost: gw\r\nX-Kubernetes-Project: a\x00b\r\n\r\n", http.StatusBadRequest},
				{"GET /api HTTP/1.1\r\nHost: gw\r\nHost: gw\r\n\r\n", http.StatusBadRequest},
				{"GET /api HTTP/1.1\r\n\r\n", http.StatusBadRequest},
				{"POST /api HTTP/1.1\r\nHost: gw\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", http.StatusBadRequest},
				{"GET /api HTTP/1.1\r\nHost: gw\r\nX-Kubernetes-Project: a\r\nX-Kubernetes-Project: a\r\n\r\n", http.StatusBadRequest},
				{"CONNECT " + victim.Key() + ":443 HTTP/1.1\r\nHost: gw\r\n\r\n", http.StatusBadRequest},
				{"GET https://" + victim.Key() + at(victim, namespaces) + " HTTP/1.1\r\nHost: gw\r\n\r\n", http.StatusForbidden},
				// An apiserver reads the first token, others read what they like.
				{"GET " + at(victim, "/api") + " HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer " + own + "\r\nAuthorization: Bearer " + theirs + "\r\n\r\n",
					http.StatusBadRequest},
				{"GET " + at(mallory, "/api") + " HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer " + own + "\r\nAuthorization: Bearer " + theirs + "\r\n\r\n",
					http.StatusBadRequest},
			} {
				Expect(door.Send(ctx, c.raw)).To(Equal(c.want), "%q", c.raw)
			}
		})

	attack("a body of 9 MiB", "design: bad input of the gateway", func(ctx SpecContext) {
		huge := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "huge"}, Data: map[string]string{"a": strings.Repeat("a", 9<<20)},
		}
		err := kit.Through(ctx, super, mallory).Client.Create(ctx, huge)
		Expect(apierrors.IsRequestEntityTooLargeError(err)).To(BeTrue(), "%v", err)
	})
})

var _ = Describe("The gateway in front of a hostile apiserver", Ordered, func() {
	const configuration, keySet = "/.well-known/openid-configuration", "/openid/v1/jwks"

	attack("the documents of an issuer, from an apiserver that redirects, floods, drips and names keys elsewhere",
		"design: discovery documents are the tenant's to write", func(ctx SpecContext) {
			far, hostile := hostileTenant(ctx)
			door := kit.DoorOf(kit.Through(ctx, super, tenant(ctx)).Config)
			for name, answer := range map[string]local.Answer{
				"redirect": local.Redirect("https://127.0.0.1:1/"), "flood": local.Endless(http.StatusOK, "{", " ", 64<<20),
				"drip":      local.Drip(strings.Repeat(" ", 1000), time.Second),
				"elsewhere": local.Status(http.StatusOK, `{"issuer":"https://`+door.Address+`","jwks_uri":"https://evil.example.com/keys"}`),
			} {
				undo := hostile.On(func(r *http.Request) bool { return r.URL.Path == configuration || r.URL.Path == keySet }, answer)
				for _, path := range []string{configuration, keySet} {
					Expect(door.Ask(ctx, nil, "/tenants/"+far.Key()+path).Code).To(Equal(http.StatusForbidden), name)
				}
				undo()
			}
			Expect(hostile.Seen(local.Path(configuration)) + hostile.Seen(local.Path(keySet))).To(BeZero())
			vc := far.VC.DeepCopy()
			Eventually(func() error { // its conditions change meanwhile
				if err := kit.Get(ctx, super.Client, vc); err != nil {
					return err
				}
				vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{ServiceAccountIssuer: "https://" + door.Address + "/tenants/" + far.Key()}
				return super.Client.Update(ctx, vc)
			}).Should(MatchError(apierrors.IsInvalid, "an External tenant has no such issuer"))
		})
})

package escapes

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/servicecidr"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// withoutConverted takes the rights from the gateway, until the spec ends, that
// only one with converted tenants has.
func withoutConverted(ctx context.Context) {
	GinkgoHelper()
	rights := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "vc-gateway-converted"}}
	Expect(kit.Get(ctx, super.Client, rights)).To(Succeed())
	Expect(super.Client.Delete(ctx, rights)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		rights.ResourceVersion, rights.UID = "", ""
		Expect(super.Client.Create(ctx, rights)).To(Succeed())
	})
}

// bearer sends requests with a token.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

var _ = Describe("The fence of a converted tenant", Ordered, ContinueOnFailure, func() {
	var (
		alice, mallory *local.Tenant
		// stolen has the token of mallory's service account of the super cluster, and
		// gateway that of vc-gateway.
		stolen, gateway client.WithWatch
	)
	forbidden := MatchError(apierrors.IsForbidden, "Forbidden")
	with := func(config *rest.Config) client.WithWatch {
		GinkgoHelper()
		c, err := local.NewClient(config)
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	// opens waits until the gateway serves a tenant, and creates a namespace with its service account, without which no pod gets to the policies.
	opens := func(ctx context.Context, t *local.Tenant) {
		GinkgoHelper()
		Eventually(func() error {
			return t.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		}).Should(Succeed())
		kit.ShouldExist(ctx, super.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.Super("shop"), Name: "default"}})
	}

	BeforeAll(func(ctx SpecContext) {
		convert := func(vc *tenancyv1alpha1.VirtualCluster) { vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted }
		alice, mallory = tenant(ctx, convert), tenant(ctx, convert)
		opens(ctx, alice)
		opens(ctx, mallory)
		stolen = with(stolenFrom(ctx, mallory))
		Expect(stolen.List(ctx, &corev1.PodList{}, client.InNamespace(mallory.Super("shop")))).To(Succeed())
		account, err := super.GatewayAccount(ctx)
		Expect(err).NotTo(HaveOccurred())
		gateway = with(account)
	})

	attack("objects outside of the tenant's namespaces, by requests that the gateway converts wrongly", "idea: whatever it sends, it sends as the tenant", func(ctx SpecContext) {
		for _, ns := range []string{alice.Super("shop"), mallory.Key(), metav1.NamespaceSystem, metav1.NamespaceDefault} {
			Expect(stolen.List(ctx, &corev1.SecretList{}, client.InNamespace(ns))).To(forbidden, ns)
			Expect(stolen.Get(ctx, client.ObjectKey{Namespace: ns, Name: "default"}, &corev1.ServiceAccount{})).To(forbidden, ns)
			Expect(stolen.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "a"}})).To(forbidden, ns)
		}
		Expect(stolen.List(ctx, &corev1.SecretList{})).To(forbidden)
		Expect(stolen.List(ctx, &corev1.NamespaceList{})).To(forbidden)
		Expect(stolen.List(ctx, &corev1.NodeList{})).To(forbidden)
		Expect(stolen.List(ctx, &tenancyv1alpha1.VirtualClusterList{})).To(forbidden)
	})

	attack("roles of another tenant, and Secrets of the root namespace, by the right to store roles there", "idea: the root namespace has the platform's keys", func(ctx SpecContext) {
		roles := &unstructured.UnstructuredList{}
		roles.SetGroupVersionKind(kinds.Shelf.WithKind("ClusterRoleList"))
		Expect(stolen.List(ctx, roles, client.InNamespace(mallory.Key()))).To(Succeed())
		Expect(stolen.List(ctx, roles, client.InNamespace(alice.Key()))).To(forbidden)
		Expect(stolen.List(ctx, roles)).To(forbidden)
		for _, name := range []string{names.AdminKubeconfigSecret, names.GatewaySecret, "converted-keys"} {
			Expect(stolen.Get(ctx, client.ObjectKey{Namespace: mallory.Key(), Name: name}, &corev1.Secret{})).To(forbidden, name)
		}
		role := &unstructured.Unstructured{}
		role.SetGroupVersionKind(kinds.Shelf.WithKind("ClusterRole"))
		role.SetName("a")
		for _, ns := range []string{alice.Key(), alice.Super("shop"), metav1.NamespaceSystem} {
			role.SetNamespace(ns)
			Expect(stolen.Create(ctx, role.DeepCopy())).To(forbidden, ns)
			Expect(gateway.Create(ctx, role.DeepCopy())).To(forbidden, ns)
		}
	})

	attack("more rights in the super cluster, in the tenant's own namespaces", "idea: bind, escalate, and tokens of the super cluster", func(ctx SpecContext) {
		ns := mallory.Super("shop")
		subject := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: mallory.Key(), Name: names.ConvertedAccount}}
		meta := metav1.ObjectMeta{Namespace: ns, Name: "more"}
		Expect(stolen.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subject, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		})).To(forbidden)
		Expect(stolen.Create(ctx, &rbacv1.Role{ObjectMeta: meta})).To(forbidden)
	})

	attack("a token that the super cluster or another tenant accepts, by any request for it", "design: token at the super apiserver", func(ctx SpecContext) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super("shop"), Name: "default"}}
		ofAlice, own := "converted.tenancy.x-k8s.io/"+alice.Key(), "converted.tenancy.x-k8s.io/"+mallory.Key()
		for name, c := range map[string]client.Client{"stolen": stolen, "a kubelet": super.Client} {
			for _, audiences := range [][]string{
				{"https://kubernetes.default.svc.cluster.local"}, {"api"}, {ofAlice}, {own, ofAlice}, {own + "-b"}, {own + "x/y"}, {""}, {own, ""},
			} {
				request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
				Expect(c.SubResource("token").Create(ctx, account, request)).To(MatchError(ContainSubstring("for audiences of the tenant only")), "%s %v", name, audiences)
			}
			request := &authenticationv1.TokenRequest{}
			Expect(c.SubResource("token").Create(ctx, account, request)).To(Succeed())
			at := rest.AnonymousClientConfig(super.Config)
			at.BearerToken = request.Status.Token
			Expect(with(at).List(ctx, &corev1.NamespaceList{})).To(MatchError(apierrors.IsUnauthorized, "Unauthorized"))
			door := kit.DoorOf(alice.Config)
			for _, path := range []string{"/tenants/" + alice.Key() + "/api/v1/secrets", "/tenants/" + mallory.Key() + "/api/v1/secrets"} {
				client := &http.Client{Transport: &bearer{token: request.Status.Token, next: &http.Transport{TLSClientConfig: door.TLS}}}
				reply, err := local.Ask(ctx, client, door.Address, path)
				Expect(err).NotTo(HaveOccurred())
				Expect(reply.Code).To(Equal(http.StatusForbidden), path)
				Expect(strings.Contains(reply.Body, "system:serviceaccount:shop:default")).To(Equal(strings.Contains(path, mallory.Key())), reply.Body)
			}
		}
		forged := "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(`{"aud":["`+ofAlice+`"],"sub":"system:serviceaccount:`+alice.Super("shop")+`:default"}`)) + "."
		door := kit.DoorOf(alice.Config)
		client := &http.Client{Transport: &bearer{token: forged, next: &http.Transport{TLSClientConfig: door.TLS}}}
		reply, err := local.Ask(ctx, client, door.Address, "/api")
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Code).To(Equal(http.StatusUnauthorized), "it is not signed")
		ofOther := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{ofAlice}}}
		platform := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "default"}}
		Expect(super.Client.SubResource("token").Create(ctx, platform, ofOther)).To(Succeed())
		client.Transport.(*bearer).token = ofOther.Status.Token
		reply, err = local.Ask(ctx, client, door.Address, "/api")
		Expect(err).NotTo(HaveOccurred())
		Expect(reply.Code).To(Equal(http.StatusUnauthorized), "it is no account of the tenant")
	})

	attack("a list of the converted tenants, by trying names", "idea: responses that differ", func(ctx SpecContext) {
		door := kit.DoorOf(alice.Config)
		for _, headers := range [][]string{nil, {"Authorization", "Bearer any"}, {"Authorization", "Basic YTpi"}} {
			response := func(name string) string {
				reply := door.Ask(ctx, nil, "/tenants/"+name+"/api", headers...)
				return strings.ReplaceAll(fmt.Sprint(reply.Code, reply.Body), name, "NAME")
			}
			Expect(response(alice.Key())).To(Equal(response("no-tenant")), "%v", headers)
		}
	})

	attack("the super cluster's CA, address and tokens, by what a pod says of its clients", "design: KUBERNETES_SERVICE_HOST, CA, token audience", func(ctx SpecContext) {
		ns := mallory.Super("shop")
		pod := func(name, audience string) *corev1.Pod {
			return kit.Pod(ns, name, func(p *corev1.Pod) {
				p.Annotations = map[string]string{names.Namespace: "kube-system"}
				p.Spec.AutomountServiceAccountToken = new(false)
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", Audience: audience}}},
				}}}}
			})
		}
		for i, audience := range []string{"https://kubernetes.default.svc.cluster.local", "converted.tenancy.x-k8s.io/" + alice.Key(), "converted.tenancy.x-k8s.io/" + mallory.Key() + "x"} {
			Expect(stolen.Create(ctx, pod(fmt.Sprintf("bad-%d", i), audience))).To(MatchError(ContainSubstring("tokens for the tenant only")), audience)
		}
		named := pod("named", "")
		Expect(stolen.Create(ctx, named)).To(Succeed())
		Expect(named.Annotations).To(HaveKeyWithValue(names.Namespace, "shop"))
		Expect(named.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken.Audience).To(Equal("converted.tenancy.x-k8s.io/" + mallory.Key()))
		label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":null}}`))
		Expect(stolen.Patch(ctx, named, label)).To(Succeed())
		Expect(stolen.Status().Patch(ctx, named, label)).To(Succeed())
		Expect(named.Annotations).To(HaveKeyWithValue(names.Namespace, "shop"))
		authorities := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kube-root-ca.crt"}}
		Eventually(func() error { return kit.Get(ctx, stolen, authorities) }).Should(Succeed())
		Expect(authorities.Data).To(Equal(map[string]string{"ca.crt": string(mallory.Config.CAData)}))
	})

	attack("nodes and addresses of the platform, by pods, Services and Endpoints", "the default of spec.policy", func(ctx SpecContext) {
		pods := map[string]func(*corev1.PodSpec){
			"a node":         func(s *corev1.PodSpec) { s.NodeName = "node-0" },
			"its files":      func(s *corev1.PodSpec) { s.Volumes[0].HostPath = &corev1.HostPathVolumeSource{Path: "/"} },
			"a server":       func(s *corev1.PodSpec) { s.Volumes[0].NFS = &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/"} },
			"its network":    func(s *corev1.PodSpec) { s.HostNetwork = true },
			"a taint":        func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
			"a priority":     func(s *corev1.PodSpec) { s.PriorityClassName = "system-node-critical" },
			"a scheduler":    func(s *corev1.PodSpec) { s.SchedulerName = "mine" },
			"a runtime":      func(s *corev1.PodSpec) { s.RuntimeClassName = new("mine") },
			"a grace period": func(s *corev1.PodSpec) { s.TerminationGracePeriodSeconds = new(int64(1 << 30)) },
			"a profile": func(s *corev1.PodSpec) {
				s.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: "Localhost", LocalhostProfile: new("a")}}
			},
		}
		for name, change := range pods {
			pod := kit.Pod(mallory.Super("shop"), "bad", func(p *corev1.Pod) {
				p.Spec.AutomountServiceAccountToken = new(false)
				p.Spec.Volumes = []corev1.Volume{{Name: "v"}}
				change(&p.Spec)
			})
			Expect(stolen.Create(ctx, pod)).To(MatchError(Or(ContainSubstring("may"), ContainSubstring("must be one of"), ContainSubstring("violates PodSecurity"),
				ContainSubstring("RuntimeClass"))), name)
		}
		meta := metav1.ObjectMeta{Namespace: mallory.Super("shop"), Name: "bad"}
		ports := []corev1.ServicePort{{Port: 80}}
		for _, object := range []client.Object{
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "metadata.internal"}},
			&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: ports, ExternalIPs: []string{"10.0.0.1"}}},
			&corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.0.0.1"}}}}}, //nolint:staticcheck // what old clients write
			&discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}}},
			&networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "a", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}},
		} {
			Expect(stolen.Create(ctx, object)).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy")), "%T", object)
		}
	})

	attack("the traffic of nodes to any address, by the status of a Service", "idea: CVE-2020-8554 by the status: nodes send what is for a load balancer to its Service", func(ctx SpecContext) {
		const address = "203.0.113.1"
		// creates chooses again if the address is one that is reserved, as the gateway does.
		creates := func(c client.Client, service *corev1.Service) {
			GinkgoHelper()
			Eventually(func() error {
				err := c.Create(ctx, service)
				if err != nil && !servicecidr.IsRejection(err) {
					return StopTrying("create a Service").Wrap(err)
				}
				return err
			}).Should(Succeed())
		}
		for name, c := range map[string]client.Client{mallory.Super("shop"): stolen, "shop": mallory.Client} {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, GenerateName: "drawing-"}, Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}},
			}}
			creates(c, service)
			for _, status := range []string{
				`{"status":{"loadBalancer":{"ingress":[{"ip":"` + address + `"}]}}}`,
				`{"status":{"loadBalancer":{"ingress":[{"ip":"` + address + `","ipMode":"VIP"},{"hostname":"a.example"}]}}}`,
			} {
				Expect(c.Status().Patch(ctx, service, client.RawPatch("application/merge-patch+json", []byte(status)))).To(Succeed())
				Expect(service.Status.LoadBalancer.Ingress[0]).To(And(HaveField("IP", address), HaveField("IPMode", HaveValue(Equal(corev1.LoadBalancerIPModeProxy)))))
			}
			Expect(c.Delete(ctx, service)).To(Succeed())
		}
		ofPlatform := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super("shop"), Name: "balanced"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}},
		}}
		creates(stolen, ofPlatform)
		ofPlatform.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
		Expect(super.Client.Status().Update(ctx, ofPlatform)).To(Succeed())
		condition := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":[{"type":"A","status":"True","reason":"A","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))
		Expect(stolen.Status().Patch(ctx, ofPlatform, condition)).To(Succeed())
		Expect(ofPlatform.Status.LoadBalancer.Ingress[0].IPMode).To(HaveValue(Equal(corev1.LoadBalancerIPModeVIP)), "the platform's has its effect")
	})

	attack("the node and its network, by a level that permits privileged pods alone", "review: Pod Security was all that kept pods from host namespaces", func(ctx SpecContext) {
		privileged := tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Provisioner = tenancyv1alpha1.ProvisionerConverted
			vc.Spec.Policy = &tenancyv1alpha1.TenantPolicy{PodSecurity: tenancyv1alpha1.PodSecurityPrivileged, AllowTolerations: []string{"*"}}
		})
		opens(ctx, privileged)
		for name, change := range map[string]func(*corev1.PodSpec){
			"its network":   func(s *corev1.PodSpec) { s.HostNetwork = true },
			"its processes": func(s *corev1.PodSpec) { s.HostPID = true },
			"its memory":    func(s *corev1.PodSpec) { s.HostIPC = true },
			"its files": func(s *corev1.PodSpec) {
				s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
			},
			"a port": func(s *corev1.PodSpec) {
				s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
			},
			"a port, initially": func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{Name: "i", Image: "a", Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}}}
			},
			"a reserved node": func(s *corev1.PodSpec) {
				s.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists}}
			},
			"all nodes": func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} },
			"a cordoned node": func(s *corev1.PodSpec) {
				s.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/unschedulable"}}
			},
		} {
			bad := kit.Pod("shop", "bad", func(p *corev1.Pod) { change(&p.Spec) })
			Expect(privileged.Client.Create(ctx, bad)).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy")), name)
		}
	})

	attack("traffic from another tenant, by NetworkPolicies of the tenant and by those of the platform", "design: namespaceSelector: {}", func(ctx SpecContext) {
		ns := mallory.Super("shop")
		from := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: alice.Super("shop"), Labels: map[string]string{"app": "a", names.Converted: alice.Key()}}}
		from.Status.PodIP = "10.244.0.9"
		to := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Labels: map[string]string{"app": "a", names.Converted: mallory.Key()}}}
		everything := []networkingv1.NetworkPolicyIngressRule{{}, {From: peers("a", from.Status.PodIP)}}
		for name, c := range map[string]client.Client{ns: stolen, "shop": mallory.Client} {
			for _, selector := range []metav1.LabelSelector{
				{}, {MatchLabels: map[string]string{"app": "a"}},
				{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}},
			} {
				policy := &networkingv1.NetworkPolicy{
					ObjectMeta: metav1.ObjectMeta{Namespace: name, GenerateName: "open-"},
					Spec:       networkingv1.NetworkPolicySpec{PodSelector: selector, Ingress: everything},
				}
				Expect(c.Create(ctx, policy)).To(Succeed())
			}
			for _, of := range []string{names.IsolationPolicy, names.DefaultPolicy, "mine." + names.Domain} {
				policy := &networkingv1.NetworkPolicy{
					ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: of}, Spec: networkingv1.NetworkPolicySpec{Ingress: everything},
				}
				Expect(c.Create(ctx, policy)).NotTo(Succeed(), of)
				Expect(c.Patch(ctx, policy, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"ingress":[{}]}}`)))).NotTo(Succeed(), of)
				Expect(c.Delete(ctx, policy)).NotTo(Succeed(), of)
			}
		}
		Expect(stolen.DeleteAllOf(ctx, &networkingv1.NetworkPolicy{}, client.InNamespace(ns), client.MatchingLabels{names.VCName: mallory.VC.Name})).NotTo(Succeed())
		labeled := &networkingv1.NetworkPolicy{ // as if it were one of the platform
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "labeled", Labels: names.OwnerLabels(mallory.VC)},
			Spec:       networkingv1.NetworkPolicySpec{Ingress: everything},
		}
		Expect(stolen.Create(ctx, labeled)).To(Succeed())
		Eventually(func() (int, error) { // the policies have their effect
			list := &networkingv1.NetworkPolicyList{}
			err := super.Client.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{names.VCName: mallory.VC.Name})
			return len(list.Items), err
		}).Should(BeNumerically(">=", 8))
		Consistently(func() (bool, error) { return kit.Reaches(ctx, super.Client, from, to) }).Should(BeFalse())
		Expect(kit.Reaches(ctx, super.Client, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: mallory.Super("default")}}, to)).To(BeTrue())
		Expect(gateway.Create(ctx, &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "open"}, Spec: networkingv1.NetworkPolicySpec{Ingress: everything},
		})).NotTo(Succeed(), "a gateway that was taken over")
		Expect(gateway.Delete(ctx, &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: names.IsolationPolicy}})).NotTo(Succeed())
	})

	attack("namespaces of the platform and of other kinds of tenants, as a gateway that was taken over", "idea: its rights have no names in them", func(ctx SpecContext) {
		hosted := tenant(ctx)
		for _, ns := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault, hosted.Key(), alice.Key()} {
			object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
			Expect(gateway.Delete(ctx, object)).NotTo(Succeed(), ns)
			label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+names.Converted+`":"a"}}}`))
			Expect(gateway.Patch(ctx, object, label)).NotTo(Succeed(), ns)
			Expect(gateway.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: names.ConvertedRole},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: mallory.Key(), Name: names.ConvertedAccount}},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.ConvertedRole},
			})).NotTo(Succeed(), ns)
		}
		Expect(gateway.Create(ctx, &rbacv1.RoleBinding{ // another tenant's account
			ObjectMeta: metav1.ObjectMeta{Namespace: alice.Super("shop"), Name: "a"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: mallory.Key(), Name: names.ConvertedAccount}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: names.ConvertedRole},
		})).NotTo(Succeed())
		Expect(gateway.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "anything"}})).NotTo(Succeed())
	})
})

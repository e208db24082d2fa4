package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/config/crd"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
)

func TestRun(t *testing.T) {
	slow := func(ctx context.Context, _ *Super) Result {
		<-ctx.Done()
		return unread(ctx.Err())
	}
	fine := func(context.Context, *Super) Result { return ok("fine") }
	checks := []Check{
		{Name: "slow", Stage: Cluster, Run: slow},
		{Name: "slower", Stage: Cluster, Run: slow, Timeout: 2 * time.Millisecond},
		{Name: "fine", Stage: Cluster, Run: fine},
		{Name: "crds", Stage: Installed, Run: fine},
	}
	findings := Run(context.Background(), checks, &Super{}, time.Millisecond)
	for i, want := range []Verdict{Failed, Failed, OK, Skipped} {
		if findings[i].Stage != checks[i].Stage || findings[i].Verdict != want {
			t.Errorf("%+v, want %s of %s", findings[i], want, checks[i].Name)
		}
	}
	if Healthy(findings) || !Healthy(findings[2:]) {
		t.Error("a finding that failed is not healthy, and one that was skipped is")
	}
}

func TestCRDsVerdict(t *testing.T) {
	want, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	all := func(change func(map[string]*apiextensionsv1.CustomResourceDefinition)) map[string]*apiextensionsv1.CustomResourceDefinition {
		have := map[string]*apiextensionsv1.CustomResourceDefinition{}
		for _, w := range want {
			c := w.DeepCopy()
			c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
				{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
			}
			have[c.Name] = c
		}
		change(have)
		return have
	}
	const name = "virtualclusters.tenancy.x-k8s.io"
	for title, tt := range map[string]struct {
		change func(map[string]*apiextensionsv1.CustomResourceDefinition)
		want   Verdict
		part   string
	}{
		"as they should be": {func(map[string]*apiextensionsv1.CustomResourceDefinition) {}, OK, "all"},
		"one is missing":    {func(have map[string]*apiextensionsv1.CustomResourceDefinition) { delete(have, name) }, Failed, "missing: " + name},
		"not established": {func(have map[string]*apiextensionsv1.CustomResourceDefinition) {
			have[name].Status.Conditions = nil
		}, Failed, "not served: " + name},
		"of another version": {func(have map[string]*apiextensionsv1.CustomResourceDefinition) {
			delete(have[name].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "spec")
		}, Warning, name},
	} {
		t.Run(title, func(t *testing.T) { is(t, crdsVerdict(want, all(tt.change)), tt.want, tt.part) })
	}
}

func TestReplicasVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		replicas replicas
		want     Verdict
		part     string
	}{
		"all":         {replicas{wanted: 2, available: 2}, OK, "2 of 2"},
		"one of two":  {replicas{wanted: 2, available: 1}, Warning, "1 of 2 replicas are available: why"},
		"none":        {replicas{wanted: 2}, Failed, "0 of 2 replicas are available: why"},
		"scaled down": {replicas{}, Failed, "scaled to zero"},
	} {
		t.Run(name, func(t *testing.T) {
			cause := ""
			if tt.replicas.available < tt.replicas.wanted {
				cause = "why"
			}
			is(t, replicasVerdict("vc-manager", "vc-system", tt.replicas, cause), tt.want, tt.part)
		})
	}
}

func TestPodTrouble(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "not found"}}
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: state}}}
	}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"no image":      {waiting("ErrImagePull"), "pod p: ErrImagePull: not found"},
		"being created": {waiting("ContainerCreating"), ""},
		"unschedulable": {corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no nodes"},
		}}, "pod p: Unschedulable: no nodes"},
		"ready": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Ready: true}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podTrouble(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: tt.status}); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTagOf(t *testing.T) {
	for image, want := range map[string]string{
		"vc-manager:v0.1.0": "v0.1.0", "registry.example.com:5000/team/vc-manager": "", "registry.example.com:5000/vc-manager:v1": "v1",
		"vc-manager@sha256:abc": "", "vc-manager:v1@sha256:abc": "v1", "vc-manager": "",
	} {
		if got := tagOf(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

func TestVersionsVerdict(t *testing.T) {
	is(t, versionsVerdict("v0.2.0", map[string]string{"vc-manager": "v0.2.0", "vc-syncer": "0.2.0"}), OK, "v0.2.0")
	is(t, versionsVerdict("v0.2.0", map[string]string{"vc-manager": "v0.2.0", "vc-syncer": "v0.1.0"}), Warning, "vc-syncer v0.1.0")
}

func TestRules(t *testing.T) {
	role := func(verbs ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "ClusterRole", "metadata": map[string]any{"name": "r"},
			"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": verbs}},
		}}
	}
	for want, have := range map[string]*unstructured.Unstructured{
		"":                              role("*"),
		"ClusterRole r lacks list pods": role("get"),
	} {
		if got, err := rulesProblem(role("get", "list"), have); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	is(t, rolesVerdict(nil), OK, "rights")
	is(t, rolesVerdict([]string{"ClusterRole r lacks list pods"}), Failed, "lacks list pods")
}

func TestBindings(t *testing.T) {
	binding := func(role, namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "b"},
			"roleRef":  map[string]any{"kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "a", "namespace": namespace}},
		}}
	}
	s := &Super{Installation: "elsewhere"}
	want := binding("r", "vc-system")
	s.relocate(want)
	for problem, have := range map[string]*unstructured.Unstructured{
		"": binding("r", "elsewhere"),
		"ClusterRoleBinding b does not name ServiceAccount elsewhere/a": binding("r", "vc-system"),
		"ClusterRoleBinding b is for ClusterRole other":                 binding("other", "elsewhere"),
	} {
		if got, err := bindingProblem(want, have); err != nil || got != problem {
			t.Errorf("got %q, %v, want %q", got, err, problem)
		}
	}
}

func TestIsHeld(t *testing.T) {
	now := time.Now()
	lease := func(holder string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)},
		}}
	}
	for name, tt := range map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"renewed": {lease("a", 14*time.Second), true}, "expired": {lease("a", 16*time.Second), false},
		"released": {lease("", time.Second), false}, "never renewed": {&coordinationv1.Lease{}, false},
	} {
		if got := isHeld(tt.lease, now); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// issued is a certificate of a name, by an authority of 30 days.
type issued struct {
	authority pki.Authority
	pair      pki.KeyPair
}

func issue(t *testing.T, name string, validity time.Duration, now time.Time) issued {
	t.Helper()
	authority, err := pki.NewAuthority("authority", 365*24*time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server("server", []string{name}, nil, validity, now)
	if err != nil {
		t.Fatal(err)
	}
	return issued{authority, pair}
}

func TestWebhookVerdict(t *testing.T) {
	const name = "hook.vc-system.svc"
	day := 24 * time.Hour
	now := time.Now()
	good := issue(t, name, 90*day, now)
	foreign := issue(t, name, 90*day, now)
	misnamed := issue(t, "other.vc-system.svc", 90*day, now)
	for title, tt := range map[string]struct {
		bundle      []byte
		certificate []byte
		key         []byte
		at          time.Time
		want        Verdict
		part        string
	}{
		"good":               {good.authority.CertPEM, good.pair.CertPEM, good.pair.KeyPEM, now, OK, "accepts"},
		"expired":            {good.authority.CertPEM, good.pair.CertPEM, good.pair.KeyPEM, now.Add(91 * day), Failed, "expired at"},
		"not valid yet":      {good.authority.CertPEM, good.pair.CertPEM, good.pair.KeyPEM, now.Add(-day), Failed, "not valid before"},
		"expires soon":       {good.authority.CertPEM, good.pair.CertPEM, good.pair.KeyPEM, now.Add(80 * day), Warning, "expires at"},
		"another authority":  {foreign.authority.CertPEM, good.pair.CertPEM, good.pair.KeyPEM, now, Failed, "unknown authority"},
		"no authority":       {nil, good.pair.CertPEM, good.pair.KeyPEM, now, Failed, "no authority"},
		"another name":       {misnamed.authority.CertPEM, misnamed.pair.CertPEM, misnamed.pair.KeyPEM, now, Failed, "not " + name},
		"the key of another": {good.authority.CertPEM, good.pair.CertPEM, foreign.pair.KeyPEM, now, Failed, "private key"},
		"no certificate":     {good.authority.CertPEM, nil, nil, now, Failed, "has no certificate"},
		"not a certificate":  {good.authority.CertPEM, []byte("x"), nil, now, Failed, "there is no certificate"},
	} {
		t.Run(title, func(t *testing.T) {
			service := &admissionregistrationv1.ServiceReference{Namespace: "vc-system", Name: "hook"}
			c := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "w", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: service, CABundle: tt.bundle},
			}}}
			secret := map[string][]byte{corev1.TLSCertKey: tt.certificate, corev1.TLSPrivateKeyKey: tt.key}
			is(t, managerWebhook.verdict(c, secret, tt.at), tt.want, tt.part)
		})
	}
}

func TestAdmissionVerdict(t *testing.T) {
	const host = "gw.example.com"
	now := time.Now()
	good, foreign := issue(t, host, time.Hour, now), issue(t, host, time.Hour, now)
	running := &replicas{wanted: 2, available: 1}
	config := func(at string, ca []byte) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: &at, CABundle: ca}
	}
	// registered returns what the gateway registers, with a client configuration.
	registered := func(config admissionregistrationv1.WebhookClientConfig, gateway *replicas, certificate []byte) admission {
		return admission{
			mutating: &admissionregistrationv1.MutatingWebhookConfiguration{
				Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: config}},
			},
			validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
				Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: config}},
			},
			gateway: gateway, certificate: certificate,
		}
	}
	at := config("https://"+host+":6443/admission", good.authority.CertPEM)
	half, other := registered(at, running, good.pair.CertPEM), registered(at, running, good.pair.CertPEM)
	half.validating, other.mutating = nil, nil
	for title, tt := range map[string]struct {
		have admission
		want Verdict
		part string
	}{
		"none":                       {admission{gateway: running}, Skipped, "no converted tenant"},
		"as it should be":            {registered(at, running, good.pair.CertPEM), OK, "answers"},
		"a certificate of others":    {registered(at, running, nil), OK, "answers"},
		"the system's authorities":   {registered(config("https://"+host, nil), running, good.pair.CertPEM), OK, "answers"},
		"no validating one":          {half, Failed, "does not exist: webhooks and policies"},
		"no mutating one":            {other, Failed, "does not exist: webhooks and policies"},
		"no gateway":                 {registered(at, nil, nil), Failed, "it does not exist"},
		"no gateway that is running": {registered(at, &replicas{wanted: 2}, good.pair.CertPEM), Failed, "no vc-gateway is available"},
		"another authority":          {registered(config("https://"+host, foreign.authority.CertPEM), running, good.pair.CertPEM), Failed, "unknown authority"},
		"a bundle without authority": {registered(config("https://"+host, []byte("x")), running, good.pair.CertPEM), Failed, "no authority"},
		"another name":               {registered(config("https://other.example.com", good.authority.CertPEM), running, good.pair.CertPEM), Failed, "not other.example.com"},
		"a Service instead of a URL": {registered(admissionregistrationv1.WebhookClientConfig{}, running, nil), Failed, "has no URL"},
	} {
		t.Run(title, func(t *testing.T) { is(t, tt.have.verdict(now), tt.want, tt.part) })
	}
}

func TestStoreVerdict(t *testing.T) {
	day := 24 * time.Hour
	now := time.Now()
	good := issue(t, "client", 90*day, now)
	secret := map[string][]byte{corev1.TLSCertKey: good.pair.CertPEM, corev1.TLSPrivateKeyKey: good.pair.KeyPEM}
	health := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: tenancyv1alpha1.ConditionStoreHealthy, Status: status, Reason: reason, Message: "m"}}
	}
	healthy := health(metav1.ConditionTrue, tenancyv1alpha1.ReasonHealthy)
	for title, tt := range map[string]struct {
		conditions []metav1.Condition
		secret     map[string][]byte
		at         time.Time
		want       Verdict
		part       string
	}{
		"healthy":        {healthy, secret, now, OK, "s is healthy"},
		"down":           {health(metav1.ConditionFalse, tenancyv1alpha1.ReasonStoreUnreachable), secret, now, Failed, "Unreachable: m"},
		"full":           {health(metav1.ConditionFalse, tenancyv1alpha1.ReasonStoreFull), secret, now, Failed, "Full: m"},
		"no report":      {nil, secret, now, Failed, "nothing is known"},
		"no credentials": {healthy, nil, now, Failed, "has no certificate"},
		"expired":        {healthy, secret, now.Add(91 * day), Failed, "expired at"},
		"expires soon":   {healthy, secret, now.Add(80 * day), Warning, "expires at"},
	} {
		t.Run(title, func(t *testing.T) {
			store := &tenancyv1alpha1.ControlPlaneStore{
				ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: tenancyv1alpha1.ControlPlaneStoreSpec{CredentialsSecret: "c"},
				Status: tenancyv1alpha1.ControlPlaneStoreStatus{Conditions: tt.conditions},
			}
			is(t, storeVerdict(store, tt.secret, tt.at), tt.want, tt.part)
		})
	}
}

func TestStoresVerdict(t *testing.T) {
	good, soon, down := ok("fine"), warning("renew", "soon"), failed("look", "down")
	is(t, storesVerdict(nil), Failed, "no ControlPlaneStore")
	is(t, storesVerdict([]Result{good, good}), OK, "2 of 2")
	is(t, storesVerdict([]Result{good, soon, good}), Warning, "soon")
	is(t, storesVerdict([]Result{soon, down, good}), Failed, "down")
}

// tenant returns a VirtualCluster with a condition Ready.
func tenant(name string, conditions ...metav1.Condition) tenancyv1alpha1.VirtualCluster {
	vc := tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	vc.Status.Conditions = conditions
	return vc
}

func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: "of this"}
}

func TestTenantsVerdict(t *testing.T) {
	ready := tenant("ready", condition(tenancyv1alpha1.ConditionReady, metav1.ConditionTrue))
	sleeps := tenant("sleeps", condition(tenancyv1alpha1.ConditionReady, metav1.ConditionFalse),
		condition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse))
	broken := tenant("broken", condition(tenancyv1alpha1.ConditionReady, metav1.ConditionFalse))
	is(t, tenantsVerdict(nil), OK, "all 0")
	is(t, tenantsVerdict([]tenancyv1alpha1.VirtualCluster{ready, sleeps}), OK, "all 2")
	is(t, tenantsVerdict([]tenancyv1alpha1.VirtualCluster{ready, broken}), Warning, "1 of 2 VirtualClusters are not Ready: team/broken (Because: of this)")
	is(t, tenantsVerdict([]tenancyv1alpha1.VirtualCluster{broken}), Failed, "no VirtualCluster is Ready")
	is(t, tenantsVerdict([]tenancyv1alpha1.VirtualCluster{tenant("new")}), Failed, "team/new (no conditions)")
}

func TestLeftoversVerdict(t *testing.T) {
	is(t, leftoversVerdict(nil), OK, "no namespaces are left")
	is(t, leftoversVerdict([]string{"team-0a1b2c-red"}), Warning, "1 namespaces are left of VirtualClusters that vanished without their finalizer: team-0a1b2c-red")
}

func TestSample(t *testing.T) {
	at := func(name, endpoint string, conditions ...string) tenancyv1alpha1.VirtualCluster {
		vc := tenant(name)
		for _, kind := range conditions {
			meta.SetStatusCondition(&vc.Status.Conditions, condition(kind, metav1.ConditionTrue))
		}
		vc.Status.Endpoint = endpoint
		return vc
	}
	const ready = tenancyv1alpha1.ConditionControlPlaneReady
	paused := at("paused", "https://p", ready)
	paused.Spec.Paused = true
	got := sample([]tenancyv1alpha1.VirtualCluster{
		at("a", "https://one", ready), at("b", "https://one", ready), at("starting", "https://two"), paused,
		at("c", "https://three", ready), at("d", "https://four", ready),
	}, 2)
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
		t.Error(got)
	}
}

func TestEndpointsVerdict(t *testing.T) {
	unknown := fmt.Errorf("connect: %w", &net.DNSError{Name: "red.example.com", IsNotFound: true})
	foreign := fmt.Errorf("connect: %w", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}})
	for title, tt := range map[string]struct {
		tried []reached
		want  Verdict
		part  string
	}{
		"none":              {nil, Skipped, "no control plane"},
		"reached":           {[]reached{{"team/red", "red.example.com:443", nil}}, OK, "1"},
		"not in DNS":        {[]reached{{"team/red", "red.example.com:443", unknown}}, Failed, "red.example.com of team/red does not resolve"},
		"a Service":         {[]reached{{"team/red", "vc-host.vc-system.svc:443", unknown}}, OK, "inside of the super cluster"},
		"another server":    {[]reached{{"team/red", "192.0.2.1:443", foreign}}, Failed, "certificate is not that of the tenant"},
		"behind a firewall": {[]reached{{"team/red", "192.0.2.1:443", errors.New("timeout")}}, Warning, "cannot be reached from here"},
	} {
		t.Run(title, func(t *testing.T) { is(t, endpointsVerdict(tt.tried), tt.want, tt.part) })
	}
}

func TestServiceAddressesVerdict(t *testing.T) {
	pool := []networkingv1.ServiceCIDR{{Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.104.0.0/13", "fd00:1::/108"}}}}
	service := func(label string, addresses ...string) []corev1.Service {
		s := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIPs: addresses}}
		if label != "" {
			s.Labels = map[string]string{label: "red"}
		}
		return []corev1.Service{s}
	}
	for name, tt := range map[string]struct {
		services []corev1.Service
		want     Verdict
		part     string
	}{
		"another range":     {service("", "10.96.0.10"), OK, "no Service"},
		"headless":          {service("", corev1.ClusterIPNone), OK, "no Service"},
		"without addresses": {service(""), OK, "no Service"},
		"a tenant's":        {service(names.VCName, "10.104.0.10"), OK, "no Service"},
		"of the pool":       {service("", "10.104.0.10"), Warning, "platform/web has 10.104.0.10"},
		"the second family": {service("", "10.96.0.10", "fd00:1::a"), Warning, "platform/web has fd00:1::a"},
	} {
		t.Run(name, func(t *testing.T) { is(t, serviceAddressesVerdict(pool, tt.services), tt.want, tt.part) })
	}
}

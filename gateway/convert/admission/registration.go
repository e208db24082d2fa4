package admission

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Registration keeps the webhooks of the super cluster that call the gateway. The
// super cluster's apiserver does not say who it is, so that the URL has a secret,
// which all replicas of the gateway find there.
type Registration struct {
	Super kubernetes.Interface

	mu      sync.Mutex
	applied address
	at      time.Time
	secrets []string
	asked   time.Time
}

// address is where the super cluster reaches the gateway.
type address struct{ url, ca string }

const (
	// secretBytes is the length of a secret.
	secretBytes = 32
	// renewal is how often a registration is corrected that somebody has changed.
	renewal = time.Minute
	// rereading is how often an unknown secret makes the gateway read the current
	// one.
	rereading = time.Second
	// superTimeout is how long the super cluster waits, in seconds. It is the
	// maximum.
	superTimeout = 30
)

// Ensure makes the super cluster call the gateway at a URL, whose certificate the
// CA verifies.
func (r *Registration) Ensure(ctx context.Context, url string, ca []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	to := address{url: strings.TrimSuffix(url, "/"), ca: string(ca)}
	if r.applied == to && time.Since(r.at) < renewal {
		return nil
	}
	secrets, err := r.read(ctx)
	if err == nil && len(secrets) == 0 {
		secrets, err = newSecret()
	}
	if err != nil {
		return err
	}
	if err := r.apply(ctx, to, secrets[0]); err != nil {
		return err
	}
	r.applied, r.at, r.secrets = to, time.Now(), secrets
	return nil
}

// Accepts reports whether a call has the secret.
func (r *Registration) Accepts(ctx context.Context, secret string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isSecret(secret) {
		return true
	}
	if time.Since(r.asked) < rereading {
		return false
	}
	r.asked = time.Now()
	current, err := r.read(ctx)
	if err != nil {
		return false
	}
	r.secrets = current
	return r.isSecret(secret)
}

func (r *Registration) isSecret(asked string) bool {
	return slices.ContainsFunc(r.secrets, func(secret string) bool {
		return subtle.ConstantTimeCompare([]byte(asked), []byte(secret)) == 1
	})
}

func newSecret() ([]string, error) {
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, fmt.Errorf("make a secret: %w", err)
	}
	return []string{base64.RawURLEncoding.EncodeToString(secret)}, nil
}

// read returns the secrets in the registration, that of the first phase first.
// Both phases have the same, except after two replicas have made the registration
// at the same time, until it is renewed.
func (r *Registration) read(ctx context.Context) ([]string, error) {
	configurations := r.Super.AdmissionregistrationV1()
	mutating, err := configurations.MutatingWebhookConfigurations().Get(ctx, names.ConvertedAdmission, metav1.GetOptions{})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read MutatingWebhookConfiguration %s: %w", names.ConvertedAdmission, err)
	}
	validating, err := configurations.ValidatingWebhookConfigurations().Get(ctx, names.ConvertedAdmission, metav1.GetOptions{})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ValidatingWebhookConfiguration %s: %w", names.ConvertedAdmission, err)
	}
	var secrets []string
	if len(mutating.Webhooks) > 0 {
		secrets = append(secrets, secretIn(mutating.Webhooks[0].ClientConfig, mutate)...)
	}
	if len(validating.Webhooks) > 0 {
		secrets = append(secrets, secretIn(validating.Webhooks[0].ClientConfig, validate)...)
	}
	return slices.Compact(secrets), nil
}

// secretIn returns the secret in the URL of a phase; nil if it has none.
func secretIn(config admissionregistrationv1.WebhookClientConfig, phase string) []string {
	_, secret, _ := strings.Cut(ptr.Deref(config.URL, ""), Path+phase+"/")
	if raw, err := base64.RawURLEncoding.DecodeString(secret); err != nil || len(raw) != secretBytes {
		return nil
	}
	return []string{secret}
}

// apply writes the registration.
func (r *Registration) apply(ctx context.Context, to address, secret string) error {
	options := metav1.ApplyOptions{FieldManager: "vc-gateway", Force: true}
	labels := map[string]string{"app.kubernetes.io/part-of": "virtualcluster"}
	mutating := v1.MutatingWebhookConfiguration(names.ConvertedAdmission).WithLabels(labels)
	validating := v1.ValidatingWebhookConfiguration(names.ConvertedAdmission).WithLabels(labels)
	for _, s := range selections() {
		mutating.WithWebhooks(s.mutating(to, secret))
		validating.WithWebhooks(s.validating(to, secret))
	}
	if _, err := r.Super.AdmissionregistrationV1().MutatingWebhookConfigurations().Apply(ctx, mutating, options); err != nil {
		return fmt.Errorf("apply MutatingWebhookConfiguration %s: %w", names.ConvertedAdmission, err)
	}
	if _, err := r.Super.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(ctx, validating, options); err != nil {
		return fmt.Errorf("apply ValidatingWebhookConfiguration %s: %w", names.ConvertedAdmission, err)
	}
	return nil
}

func (a address) clientConfig(phase, secret string) *v1.WebhookClientConfigApplyConfiguration {
	config := v1.WebhookClientConfig().WithURL(a.url + Path + phase + "/" + secret)
	if ca := bytes.TrimSpace([]byte(a.ca)); len(ca) > 0 {
		config.WithCABundle(ca...)
	}
	return config
}

// selection is one webhook: which requests the gateway is asked about. It is not
// asked about those of tenants without webhooks and policies, as far as labels
// show it, nor about those of nodes and the scheduler, which work for all tenants.
type selection struct {
	name string
	// namespaces has labels of which each must exist.
	namespaces []string
	// rules are those of the webhook.
	rules []*rule
	// condition is an expression; empty for none.
	condition string
	// labelled: the objects have the tenant's label.
	labelled bool
	// policy is Exact for objects in the form of the request.
	policy admissionregistrationv1.MatchPolicyType
}

// notOfNodes is the condition of all webhooks.
const notOfNodes = "!('system:nodes' in request.userInfo.groups) && request.userInfo.username != 'system:kube-scheduler'"

// notRequested is the condition of webhooks for objects in another form than that
// of the request. Conditions see the resource of the request in each form.
const notRequested = "request.kind.group != request.requestKind.group || request.kind.version != request.requestKind.version"

const (
	namespaced = admissionregistrationv1.NamespacedScope
	cluster    = admissionregistrationv1.ClusterScope
	wildcard   = "*"
)

// inNamespaces are the labels of namespaces of tenants with webhooks or policies.
var inNamespaces = []string{names.AdmissionLabel, names.Converted}

func selections() []selection { return append(requested(), converted()...) }

// requested returns the webhooks for objects in the form of the request.
func requested() []selection {
	const policy = admissionregistrationv1.Exact
	return []selection{
		{
			name: "objects", policy: policy, namespaces: inNamespaces,
			rules: []*rule{
				ruleOf(namespaced, wildcard, wildcard, "*/*"), ruleOf(cluster, "", wildcard, "namespaces", "namespaces/status", "namespaces/finalize"),
			},
			condition: "request.resource.group != 'rbac.authorization.k8s.io'",
		},
		{
			name: "definitions", policy: policy, labelled: true,
			rules: []*rule{ruleOf(cluster, "apiextensions.k8s.io", wildcard, "customresourcedefinitions")},
		},
		{
			name: "custom", policy: policy, rules: []*rule{ruleOf(cluster, wildcard, wildcard, "*/*")},
			condition: "request.resource.group.matches('^vc-[0-9a-f]{16}[.]')",
		},
		{name: "shelved", policy: policy, rules: []*rule{ruleOf(namespaced, kinds.Shelf.Group, wildcard, shelvedResources()...)}},
	}
}

// converted returns the webhooks for objects in other forms than that of the
// request: each has one form of each kind, to which the super cluster converts.
func converted() []selection {
	selections := []selection{{name: "first"}, {name: "second"}, {name: "third"}}
	for i := range selections {
		s := &selections[i]
		s.namespaces, s.condition, s.policy = inNamespaces, notRequested, admissionregistrationv1.Equivalent
		for _, of := range forms {
			if i < len(of) {
				s.rules = append(s.rules, ruleOf(namespaced, of[i].Group, of[i].Version, of[i].Resource, of[i].Resource+"/*"))
			}
		}
	}
	return selections
}

type rule = v1.RuleWithOperationsApplyConfiguration

func ruleOf(scope admissionregistrationv1.ScopeType, group, version string, resources ...string) *rule {
	return v1.RuleWithOperations().WithOperations(admissionregistrationv1.OperationAll).
		WithAPIGroups(group).WithAPIVersions(version).WithResources(resources...).WithScope(scope)
}

// shelvedResources are those of objects that have no namespace for the tenant. No
// webhook or policy decides about webhooks and policies.
func shelvedResources() []string {
	var resources []string
	for _, kind := range kinds.All() {
		if kind.Stored.InRoot && !kind.IsAdmission() {
			resources = append(resources, kind.Resource)
			for name := range kind.Subresources {
				resources = append(resources, kind.Resource+"/"+name)
			}
		}
	}
	slices.Sort(resources)
	return resources
}

// fullName is the name of a webhook.
func (s selection) fullName() string { return s.name + "." + names.ConvertedAdmission }

func (s selection) namespaceSelector() *applyLabelSelector {
	return exist(s.namespaces...)
}

func (s selection) objectSelector() *applyLabelSelector {
	if s.labelled {
		return exist(names.Converted)
	}
	return exist()
}

func (s selection) conditions() []*v1.MatchConditionApplyConfiguration {
	all := []*v1.MatchConditionApplyConfiguration{v1.MatchCondition().WithName("not-of-nodes").WithExpression(notOfNodes)}
	if s.condition != "" {
		all = append(all, v1.MatchCondition().WithName(s.name).WithExpression(s.condition))
	}
	return all
}

func (s selection) mutating(to address, secret string) *v1.MutatingWebhookApplyConfiguration {
	return v1.MutatingWebhook().WithName(s.fullName()).WithClientConfig(to.clientConfig(mutate, secret)).
		WithRules(s.rules...).WithNamespaceSelector(s.namespaceSelector()).WithObjectSelector(s.objectSelector()).
		WithMatchConditions(s.conditions()...).WithMatchPolicy(s.policy).
		WithFailurePolicy(admissionregistrationv1.Fail).WithSideEffects(admissionregistrationv1.SideEffectClassNoneOnDryRun).
		WithTimeoutSeconds(superTimeout).WithAdmissionReviewVersions("v1").WithReinvocationPolicy(admissionregistrationv1.NeverReinvocationPolicy)
}

func (s selection) validating(to address, secret string) *v1.ValidatingWebhookApplyConfiguration {
	return v1.ValidatingWebhook().WithName(s.fullName()).WithClientConfig(to.clientConfig(validate, secret)).
		WithRules(s.rules...).WithNamespaceSelector(s.namespaceSelector()).WithObjectSelector(s.objectSelector()).
		WithMatchConditions(s.conditions()...).WithMatchPolicy(s.policy).
		WithFailurePolicy(admissionregistrationv1.Fail).WithSideEffects(admissionregistrationv1.SideEffectClassNoneOnDryRun).
		WithTimeoutSeconds(superTimeout).WithAdmissionReviewVersions("v1")
}

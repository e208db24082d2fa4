package escapes

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Expressions that a tenant stores", func() {
	inBothChains(storeExpressions)
})

// storeExpressions declares the attacks by many objects, each of which is small
// enough.
func storeExpressions(isolation tenancyv1alpha1.Isolation, where string) {
	const (
		ns = "stored"
		// most is how many policies of a thousand short expressions fit into the
		// default limit, or configurations of a thousand webhooks instead of each.
		most    = 7
		atLimit = "limited to as much work as 4000 of the usual length"
	)
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) { mallory = tenant(ctx, kit.WithIsolation(isolation)) })
	shouldServeOthers(isolation, ns)
	AfterEach(func(ctx SpecContext) {
		// The tenant can delete what it has stored, and has room then.
		for _, all := range []client.Object{
			&admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
		} {
			Expect(mallory.Client.DeleteAllOf(ctx, all)).To(Succeed())
		}
		policy := thousandExpressions("room")
		Eventually(func() error { return mallory.Client.Create(ctx, policy) }).WithContext(ctx).Should(Succeed())
		Expect(mallory.Client.Delete(ctx, policy)).To(Succeed())
	})
	stored := func(ctx context.Context) int {
		GinkgoHelper()
		all := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
		Expect(mallory.Client.List(ctx, all)).To(Succeed())
		return len(all.Items)
	}
	shouldRefuse := func(err error) {
		GinkgoHelper()
		Expect(err).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(atLimit))))
	}
	// leave leaves room for a number of policies. Webhooks take the rest, since they
	// are not compiled.
	leave := func(ctx context.Context, room int) {
		GinkgoHelper()
		for i := range most - room {
			Expect(mallory.Client.Create(ctx, thousandWebhooks(fmt.Sprintf("full-%d", i)))).To(Succeed())
		}
	}

	attack("policies of a thousand expressions each"+where, "idea: four of them take 4 GB, and again after a restart", func(ctx SpecContext) {
		for i := range most {
			Expect(mallory.Client.Create(ctx, thousandExpressions(fmt.Sprintf("full-%d", i)))).To(Succeed())
		}
		shouldRefuse(mallory.Client.Create(ctx, thousandExpressions("more")))
	})

	attack("policies of a thousand expressions each, eight at a time"+where, "idea: each looks before the others are stored", func(ctx SpecContext) {
		const room = 2
		leave(ctx, room)
		var clients sync.WaitGroup
		for i := range 8 {
			clients.Go(func() { _ = mallory.Client.Create(ctx, thousandExpressions(fmt.Sprintf("many-%d", i))) })
		}
		clients.Wait()
		Expect(stored(ctx)).To(Equal(room))
	})

	attack("policies whose client leaves before the response"+where, "idea: a write without a result is not counted", func(ctx SpecContext) {
		const room = 2
		leave(ctx, room)
		for i := range 10 {
			leaving, end := context.WithTimeout(ctx, time.Duration(60*i)*time.Millisecond)
			_ = mallory.Client.Create(leaving, thousandExpressions(fmt.Sprintf("left-%d", i)))
			end()
		}
		for i := range room {
			_ = mallory.Client.Create(ctx, thousandExpressions(fmt.Sprintf("rest-%d", i)))
		}
		Expect(stored(ctx)).To(BeNumerically("<=", room))
	})

	attack("expressions that are added to small policies"+where, "idea: an object is counted when it is created", func(ctx SpecContext) {
		leave(ctx, 0)
		small := thousandExpressions("small")
		small.Spec.Validations = small.Spec.Validations[:1]
		Expect(mallory.Client.Create(ctx, small)).To(Succeed())
		Eventually(func(ctx context.Context) error { // a controller writes the status
			now := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			if err := mallory.Client.Get(ctx, client.ObjectKeyFromObject(small), now); err != nil {
				return err
			}
			now.Spec = thousandExpressions("small").Spec
			return mallory.Client.Update(ctx, now)
		}).WithContext(ctx).Should(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(atLimit))))
		shouldRefuse(mallory.Client.Patch(ctx, thousandExpressions("small"), client.Merge))
		code, text := sendSoon(ctx, mallory, http.MethodPatch, policyPath+"/small?fieldManager=m&force=true", "application/apply-patch+yaml", strings.NewReader(
			`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"small"},"spec":{`+forSettings+
				`,"validations":[`+strings.TrimSuffix(strings.Repeat(`{"expression":"true"},`, 1000), ",")+`]}}`))
		Expect(code).To(Equal(http.StatusForbidden), "%.300s", text)
		Expect(text).To(ContainSubstring(atLimit))
	})

	attack("configurations of a thousand webhooks each"+where, "review: 50 clients take 1.2 GiB with them", func(ctx SpecContext) {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			err = mallory.Client.Create(ctx, thousandWebhooks(fmt.Sprintf("many-%d", i)))
		}
		shouldRefuse(err)
	})
}

// thousandExpressions is a policy of short expressions.
func thousandExpressions(name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	policy.Name = name
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: kit.ForRequests("", "configmaps", admissionregistrationv1.Create)[0],
	}}}
	for range 1000 {
		policy.Spec.Validations = append(policy.Spec.Validations, admissionregistrationv1.Validation{Expression: "true"})
	}
	return policy
}

// thousandWebhooks is a configuration of webhooks that nothing calls.
func thousandWebhooks(name string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	configuration.Name = name
	for i := range 1000 {
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: fmt.Sprintf("w%d.example.com", i), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://a.example.com")},
			Rules: kit.ForRequests("none.example.com", "none", admissionregistrationv1.Create),
		})
	}
	return configuration
}

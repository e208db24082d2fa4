package policyinformers

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	generic "k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestBrokenPolicy: a policy whose compilation panics. The first compilation
// of upstream is in a goroutine that does not recover, and ended the process.
func TestBrokenPolicy(t *testing.T) {
	g := NewWithT(t)
	utilruntime.ReallyCrash = false // as a host does
	named := metav1.ObjectMeta{Name: "x"}
	client := fake.NewClientset(
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: named, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "x"},
		})
	factory := New(informers.NewSharedInformerFactory(client, 0))
	policies := factory.Admissionregistration().V1()
	var compilations atomic.Int64
	source := generic.NewPolicySource(policies.ValidatingAdmissionPolicies().Informer(), policies.ValidatingAdmissionPolicyBindings().Informer(),
		validating.NewValidatingAdmissionPolicyAccessor, validating.NewValidatingAdmissionPolicyBindingAccessor,
		func(*validating.Policy) validating.Validator {
			if compilations.Add(1) == 1 {
				panic("a broken policy")
			}
			return nil
		}, factory, nil, nil)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	go func() { ended <- source.Run(ctx) }()
	g.Eventually(compilations.Load, 30*time.Second).Should(BeEquivalentTo(1))
	g.Expect(source.HasSynced()).To(BeFalse(), "its tenant's requests fail")

	// Another change compiles all again.
	named.Labels = map[string]string{"changed": "true"}
	_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Update(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named}, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(source.HasSynced, 30*time.Second).Should(BeTrue())
	g.Expect(source.Hooks()).To(HaveLen(1))
	cancel()
	g.Eventually(ended, 30*time.Second).Should(Receive())
}

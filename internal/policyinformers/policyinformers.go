// Package policyinformers has the informers of the plugins of admission policies,
// for clusters whose policies are not trusted.
package policyinformers

import (
	"fmt"
	"sync"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"
)

// Informers are the informers of one plugin of policies, which they initialize.
type Informers struct {
	informers.SharedInformerFactory

	mu       sync.Mutex
	bindings cache.SharedIndexInformer // of the plugin that has this factory
}

// New returns the informers of a cluster.
func New(factory informers.SharedInformerFactory) *Informers {
	return &Informers{SharedInformerFactory: factory}
}

// Initialize implements admission.PluginInitializer.
func (p *Informers) Initialize(plugin admission.Interface) {
	policy, ok := plugin.(interface {
		initializer.WantsExcludedAdmissionResources
		initializer.WantsExternalKubeInformerFactory
	})
	if ok {
		policy.SetExternalKubeInformerFactory(p)
	}
}

// ForResource implements informers.SharedInformerFactory. Policies call it for
// their parameters only, and without an informer create a dynamic one, which
// ends with the use of the parameter. The tenant's informers do not have the
// contents of ConfigMaps and Secrets.
func (*Informers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("parameters of policies have no shared informer of %s", resource.GroupResource())
}

// Admissionregistration implements informers.SharedInformerFactory, on this
// factory.
func (p *Informers) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(p, metav1.NamespaceAll, nil)
}

// InformerFor implements informers.SharedInformerFactory.
func (p *Informers) InformerFor(example runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	found := p.SharedInformerFactory.InformerFor(example, newFunc)
	switch example.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.bindings == nil {
			p.bindings = &bindingInformer{SharedIndexInformer: found}
		}
		return p.bindings
	default:
		return found
	}
}

// bindingInformer makes upstream compile policies only where it recovers from
// a panic.
//
// Upstream's source of policies waits until this informer has synced, compiles
// the policies in a goroutine that does not recover, and then again whenever
// they change, in a loop that does. Each compilation begins with the question
// whether this informer has synced, and is put off if it has not. So the second
// answer is no: the loop follows at once, and compiles all. Until then, the
// plugin is not ready, and requests wait.
type bindingInformer struct {
	cache.SharedIndexInformer

	synced atomic.Int64 // how many times it had
}

// secondQuestion is the one before the first compilation.
const secondQuestion = 2

// HasSynced implements cache.SharedInformer.
func (i *bindingInformer) HasSynced() bool {
	return i.SharedIndexInformer.HasSynced() && i.synced.Add(1) != secondQuestion
}

package networks

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// wellKnownService is a Service of a cluster of which each network has one.
type wellKnownService struct {
	namespace, name string
	// mirrored is set if its EndpointSlice has its name, and is copied for each
	// network. Otherwise the tenant's controllers find the endpoints by the
	// selector.
	mirrored bool
}

var wellKnown = []wellKnownService{
	{namespace: metav1.NamespaceDefault, name: names.APIService, mirrored: true},
	{namespace: metav1.NamespaceSystem, name: names.DNSService},
}

// of returns the name of the Service of a network.
func (w wellKnownService) of(network string) string { return w.name + "-" + network }

// concerns reports whether a name is that of the Service, or like that of a
// network's.
func (w wellKnownService) concerns(name string) bool {
	return name == w.name || strings.HasPrefix(name, w.of(""))
}

// foundServices are the Services and EndpointSlices in a tenant's namespaces
// with Services of networks. They are shared and stay as they are.
type foundServices struct {
	services map[client.ObjectKey]*corev1.Service
	slices   map[client.ObjectKey]*discoveryv1.EndpointSlice
}

// all returns all objects.
func (f *foundServices) all() iter.Seq[client.Object] {
	return func(yield func(client.Object) bool) {
		for _, service := range f.services {
			if !yield(service) {
				return
			}
		}
		for _, slice := range f.slices {
			if !yield(slice) {
				return
			}
		}
	}
}

// objectID identifies a Service or an EndpointSlice.
type objectID struct {
	isSlice bool
	key     client.ObjectKey
}

// idOf identifies an object that the platform makes.
func idOf(obj client.Object) objectID {
	_, isSlice := obj.(*discoveryv1.EndpointSlice)
	return objectID{isSlice: isSlice, key: client.ObjectKeyFromObject(obj)}
}

// servicePass is one pass over the Services of all networks of a tenant.
type servicePass struct {
	services *services
	found    *foundServices
	// kept are the objects that networks have or will have.
	kept map[objectID]bool
	// left is how many objects may still be created.
	left int
}

// ensure ensures the Services of a network, and creates them if it may. It
// returns the condition of the network; nil if nothing is known yet.
func (p *servicePass) ensure(ctx context.Context, n *networkv1.Network, create bool) (*metav1.Condition, error) {
	outcome := &serviceOutcome{}
	for _, w := range wellKnown {
		if err := p.ensureOne(ctx, n, w, create, outcome); err != nil {
			return nil, err
		}
	}
	return outcome.condition(n), nil
}

// ensureOne ensures one Service of a network with its EndpointSlice.
func (p *servicePass) ensureOne(
	ctx context.Context, n *networkv1.Network, w wellKnownService, create bool, outcome *serviceOutcome,
) error {
	key := client.ObjectKey{Namespace: w.namespace, Name: w.of(n.Name)}
	desired := p.found.desiredService(w, n.Name)
	have := p.found.services[key]
	switch {
	case desired == nil:
		return nil // the cluster has no such Service
	case len(key.Name) > validation.DNS1035LabelMaxLength:
		outcome.fail(networkv1.ReasonServiceNameTooLong, fmt.Sprintf("the network has no Service %s, whose name would exceed %d characters",
			key, validation.DNS1035LabelMaxLength))
		return nil
	case have != nil && !isPlatforms(have):
		outcome.fail(networkv1.ReasonServiceNameTaken, fmt.Sprintf("the network has no Service %s: one of yours has the name; delete it", key))
		return nil
	case have != nil && have.DeletionTimestamp == nil && p.services.misplaced(have):
		outcome.pending = true
		return nil // it is deleted, and created with an address of the network
	}
	p.kept[idOf(desired)] = true
	outcome.names = append(outcome.names, key.String())
	if have != nil {
		if err := p.updateService(ctx, have, desired); err != nil {
			return err
		}
	} else if message, err := p.create(ctx, n, create, desired, outcome); message != "" || err != nil {
		return err
	}
	if !w.mirrored {
		return nil
	}
	return p.ensureSlice(ctx, n, w, create, outcome)
}

// ensureSlice ensures the EndpointSlice of a network's Service.
func (p *servicePass) ensureSlice(
	ctx context.Context, n *networkv1.Network, w wellKnownService, create bool, outcome *serviceOutcome,
) error {
	desired := p.found.desiredSlice(w, n.Name)
	if desired == nil {
		return nil
	}
	key := client.ObjectKeyFromObject(desired)
	have := p.found.slices[key]
	if have == nil {
		p.kept[idOf(desired)] = true
		_, err := p.create(ctx, n, create, desired, outcome)
		return err
	}
	switch {
	case !isPlatforms(have):
		outcome.fail(networkv1.ReasonServiceNameTaken, fmt.Sprintf(
			"the Service %s of the network has no endpoints: an EndpointSlice of yours has the name; delete it", key))
		return nil
	case have.AddressType != desired.AddressType: // which is immutable
		outcome.pending = true
		return nil // it is deleted
	}
	p.kept[idOf(desired)] = true
	return p.updateSlice(ctx, have, desired)
}

// create creates an object of a network, if it may.
func (p *servicePass) create(
	ctx context.Context, n *networkv1.Network, may bool, obj client.Object, outcome *serviceOutcome,
) (message string, err error) {
	outcome.pending = outcome.pending || !may || p.left <= 0
	if !may || p.left <= 0 {
		return "", nil
	}
	p.left--
	message, err = p.services.create(ctx, n, obj)
	if message != "" {
		outcome.fail(networkv1.ReasonServiceRejected, "the apiserver of this cluster rejects what the network needs: "+message)
	}
	return message, err
}

// updateService makes a Service as it should be, if it is not.
func (p *servicePass) updateService(ctx context.Context, have, desired *corev1.Service) error {
	changed := have.DeepCopy()
	adopt(changed, desired)
	changed.Spec = desired.Spec
	changed.Spec.ClusterIP, changed.Spec.ClusterIPs = have.Spec.ClusterIP, have.Spec.ClusterIPs
	changed.Spec.IPFamilies, changed.Spec.IPFamilyPolicy = have.Spec.IPFamilies, have.Spec.IPFamilyPolicy
	return p.update(ctx, have, changed)
}

// updateSlice makes an EndpointSlice as it should be, if it is not.
func (p *servicePass) updateSlice(ctx context.Context, have, desired *discoveryv1.EndpointSlice) error {
	changed := have.DeepCopy()
	adopt(changed, desired)
	changed.Endpoints, changed.Ports = desired.Endpoints, desired.Ports
	return p.update(ctx, have, changed)
}

// adopt sets the labels and annotations of an object, and keeps others.
func adopt(changed, desired client.Object) {
	labels, annotations := maps.Clone(changed.GetLabels()), maps.Clone(changed.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, desired.GetLabels())
	maps.Copy(annotations, desired.GetAnnotations())
	changed.SetLabels(labels)
	changed.SetAnnotations(annotations)
}

func (p *servicePass) update(ctx context.Context, have, changed client.Object) error {
	if have.GetDeletionTimestamp() != nil || equality.Semantic.DeepEqual(have, changed) {
		return nil
	}
	err := p.services.cluster.GetClient().Patch(ctx, changed, client.MergeFrom(have))
	if apierrors.IsInvalid(err) {
		return p.remove(ctx, have) // it cannot become what it should be
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("restore %T %s: %w", have, client.ObjectKeyFromObject(have), err)
	}
	return nil
}

// deleteOthers deletes what the platform has made for networks that have ended,
// or are the default network now.
func (p *servicePass) deleteOthers(ctx context.Context) error {
	for have := range p.found.all() {
		if isPlatforms(have) && !p.kept[idOf(have)] {
			if err := p.remove(ctx, have); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *servicePass) remove(ctx context.Context, have client.Object) error {
	if have.GetDeletionTimestamp() != nil {
		return nil
	}
	obj := have.DeepCopyObject().(client.Object)
	if err := p.services.cluster.GetClient().Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %T %s: %w", have, client.ObjectKeyFromObject(have), err)
	}
	return nil
}

// desiredService returns the Service of a network: the same ports and selector as
// the cluster's; nil if the cluster has none, or one whose endpoints its owner
// writes.
func (f *foundServices) desiredService(w wellKnownService, network string) *corev1.Service {
	of := f.services[client.ObjectKey{Namespace: w.namespace, Name: w.name}]
	if of == nil || of.DeletionTimestamp != nil || of.Spec.Type == corev1.ServiceTypeExternalName || len(of.Spec.Ports) == 0 ||
		!w.mirrored && len(of.Spec.Selector) == 0 {
		return nil
	}
	desired := &corev1.Service{ObjectMeta: w.meta(network), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP,
		// An apiserver's defaults, without which the Service would differ.
		SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
	}}
	if !w.mirrored {
		desired.Spec.Selector = maps.Clone(of.Spec.Selector)
	}
	for _, port := range of.Spec.Ports {
		port.NodePort = 0
		desired.Spec.Ports = append(desired.Spec.Ports, port)
	}
	return desired
}

// desiredSlice returns the EndpointSlice of a network's Service; nil while the
// cluster's Service has none.
func (f *foundServices) desiredSlice(w wellKnownService, network string) *discoveryv1.EndpointSlice {
	of := f.slices[client.ObjectKey{Namespace: w.namespace, Name: w.name}]
	if of == nil || of.DeletionTimestamp != nil {
		return nil
	}
	desired := &discoveryv1.EndpointSlice{ObjectMeta: w.meta(network), AddressType: of.AddressType}
	desired.Labels[discoveryv1.LabelServiceName] = w.of(network)
	desired.Labels[discoveryv1.LabelManagedBy] = sliceManager
	of = of.DeepCopy()
	desired.Endpoints, desired.Ports = of.Endpoints, of.Ports
	return desired
}

// sliceManager is the value of the label of EndpointSlices that says who writes
// them.
const sliceManager = "vc-syncer"

// serviceOutcome is what is known of the Services of one network.
type serviceOutcome struct {
	reason, message string
	// names are the Services that the network has.
	names []string
	// pending is set while one is missing for no reason of the tenant's.
	pending bool
}

// fail records why one is missing, if it is the first.
func (o *serviceOutcome) fail(reason, message string) {
	if o.reason == "" {
		o.reason, o.message = reason, message
	}
}

// condition returns the condition of a network; the one that it has while some
// Services are about to be created.
func (o *serviceOutcome) condition(n *networkv1.Network) *metav1.Condition {
	c := &metav1.Condition{
		Type: networkv1.ConditionServices, Status: metav1.ConditionTrue, ObservedGeneration: n.Generation,
		Reason: networkv1.ReasonServicesCreated, Message: "the network has the Services " + strings.Join(o.names, " and "),
	}
	switch {
	case o.reason != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, o.reason, o.message
	case o.pending, len(o.names) == 0:
		return meta.FindStatusCondition(n.Status.Conditions, networkv1.ConditionServices)
	}
	return c
}

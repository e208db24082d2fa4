package resources

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// kubelet is the source of events whose host is the node of a pod, which the
// tenant may know. Events of other sources have the host of a component of the
// super cluster.
const kubelet = "kubelet"

// Event is synced up if it is about a copy, as an event about the tenant's
// object. It expires in the tenant by itself.
func Event() kinds.Flow {
	return kinds.Up[*corev1.Event]{
		Name:     "Event",
		Object:   &corev1.Event{},
		List:     &corev1.EventList{},
		Summary:  "up, with the tenant's names",
		Optional: true,
		Expires:  true,
		Desired:  tenantEvent,
		Merge: func(tenant, desired *corev1.Event) {
			meta := tenant.ObjectMeta
			*tenant = *desired
			tenant.ObjectMeta = meta
		},
	}
}

func tenantEvent(v kinds.View, super *corev1.Event) *corev1.Event {
	about := super.InvolvedObject
	kind := about.GroupVersionKind().GroupKind()
	obj := v.Lookup(kind, client.ObjectKey{Namespace: about.Namespace, Name: about.Name}, about.UID)
	if obj == nil || obj.GetNamespace() != v.Namespace {
		// It is about an object of the super cluster itself, or a deleted one,
		// or is not in the namespace of its object, as the apiserver requires.
		return nil
	}
	message := super.Message
	if kind == podKind {
		var ok bool
		if message, ok = withoutTokens(message, obj); !ok {
			return nil
		}
	}
	event := super.DeepCopy()
	event.ObjectMeta = metav1.ObjectMeta{Namespace: v.Namespace, Name: super.Name}
	event.InvolvedObject.Namespace = obj.GetNamespace()
	event.InvolvedObject.Name = obj.GetName()
	event.InvolvedObject.UID = obj.GetUID()
	event.InvolvedObject.ResourceVersion = ""
	// A related object could be any object of the super cluster.
	event.Related = nil
	// The instance is the host or a pod of a component of the super cluster.
	event.ReportingInstance = event.ReportingController
	if event.Source.Component != kubelet {
		event.Source.Host = ""
	}
	event.Message = v.Tenant.Text(message, v.Namespace)
	event.Action = v.Tenant.Text(super.Action, v.Namespace)
	return event
}

// unreadSecret is the error of a kubelet that has not read a Secret in time, and
// does not say which one.
const unreadSecret = "failed to sync secret cache"

// withoutTokens returns the message of an event about a pod without the errors
// about the Secret with the pod's tokens, and reports whether any error is
// left. The tenant has no such Secret. The syncer creates it when the pod has a
// node, and the node's kubelet usually reads it first, fails, and retries.
//
// A kubelet lists the errors of a volume like this:
//
//	MountVolume.SetUp failed for volume "v" : [secret "a" not found, configmap "b" not found]
func withoutTokens(message string, pod client.Object) (left string, ok bool) {
	secret, tokensAlone := names.TokenSecret(pod.GetName()), readsTokensAlone(message, pod)
	about := func(text string) bool {
		return mentions(text, secret) || tokensAlone && strings.Contains(text, unreadSecret)
	}
	if !about(message) {
		return message, true
	}
	head, list, listed := strings.Cut(strings.TrimSuffix(message, "]"), " : [")
	if !listed || about(head) {
		return "", false
	}
	others := slices.DeleteFunc(strings.Split(list, ", "), about)
	switch len(others) {
	case 0:
		return "", false
	case 1:
		return head + " : " + others[0], true
	}
	return head + " : [" + strings.Join(others, ", ") + "]", true
}

// readsTokensAlone reports whether a message is about a volume of a pod that has no
// Secret but that with its tokens.
func readsTokensAlone(message string, pod client.Object) bool {
	of, ok := pod.(*corev1.Pod)
	return ok && slices.ContainsFunc(of.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Projected != nil && strings.Contains(message, " for volume "+strconv.Quote(v.Name)+" ") &&
			!slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil })
	})
}

// mentions reports whether a text has the name of an object as a whole word.
func mentions(text, name string) bool {
	if !strings.Contains(text, name) {
		return false
	}
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
	return slices.ContainsFunc(words, func(word string) bool { return strings.Trim(word, ".") == name })
}

package vnagent

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// pods finds the copies of tenants' pods.
type pods struct {
	// super reads from the super cluster itself: a cache would hold every pod
	// there, and be behind.
	super client.Reader
}

// find returns the key of the copy of the pod that a request is about. It
// ensures that the namespace has the tenant's UID and that the pod is a copy
// made for the tenant: a name alone proves nothing.
func (p pods) find(ctx context.Context, of tenant, t target) (types.NamespacedName, error) {
	missing := refusef(http.StatusNotFound, "pod %q does not exist", t.pod)
	key := types.NamespacedName{Namespace: names.SuperNamespace(of.key, t.namespace), Name: t.pod}
	namespace, err := p.metadata(ctx, "Namespace", types.NamespacedName{Name: key.Namespace})
	if err != nil {
		return key, err
	}
	if namespace == nil || namespace.Annotations[names.VCUID] != string(of.uid) {
		return key, missing
	}
	pod, err := p.metadata(ctx, "Pod", key)
	switch {
	case err != nil:
		return key, err
	case pod == nil, pod.Annotations[names.Cluster] != of.key, pod.Annotations[names.Namespace] != t.namespace:
		return key, missing
	case t.uid != "" && pod.Annotations[names.UID] != string(t.uid):
		return key, missing
	default:
		return key, nil
	}
}

// metadata reads what is said about an object; nil if it does not exist.
func (p pods) metadata(ctx context.Context, kind string, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	err := p.super.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s %s: %w", kind, key, err)
	}
	return obj, nil
}

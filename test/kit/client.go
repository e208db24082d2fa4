package kit

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Create creates objects. A pod of a new namespace is created when a controller
// has created the service account there, an object of a namespace that was deleted
// before when the apiserver knows the new one, and a Service when it is given an
// address that it may have.
func Create(ctx context.Context, c client.Client, objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		var err error
		Eventually(func() error {
			err = c.Create(ctx, obj)
			return err
		}).WithContext(ctx).ShouldNot(Satisfy(isTransient))
		Expect(err).NotTo(HaveOccurred())
	}
}

// isTransient reports whether a pod was rejected because its service account does
// not exist, an object because the namespace is being terminated, or a Service
// because the address that it was given is reserved.
func isTransient(err error) bool {
	return apierrors.IsForbidden(err) && (strings.Contains(err.Error(), "error looking up service account") ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		strings.Contains(err.Error(), "the cluster IP is one of those that are reserved"))
}

// Get brings an object up to date.
func Get(ctx context.Context, c client.Client, obj client.Object) error {
	return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

// Read returns a function for Eventually that reads an object. An assertion
// about an object that cannot be read fails.
func Read[T client.Object](ctx context.Context, c client.Client, obj T) func() (T, error) {
	return func() (T, error) {
		now := obj.DeepCopyObject().(T)
		err := Get(ctx, c, now)
		return now, err
	}
}

// Edit reads an object, changes and updates it, until there is no conflict.
func Edit[T client.Object](ctx context.Context, c client.Client, obj T, change func(T)) {
	GinkgoHelper()
	rewrite(ctx, c, obj, func(ctx context.Context) error {
		change(obj)
		return c.Update(ctx, obj)
	})
}

// EditStatus does the same with the status.
func EditStatus[T client.Object](ctx context.Context, c client.Client, obj T, change func(T)) {
	GinkgoHelper()
	rewrite(ctx, c, obj, func(ctx context.Context) error {
		change(obj)
		return c.Status().Update(ctx, obj)
	})
}

// SetPodStatus changes the status of a pod, as its kubelet would.
func SetPodStatus(ctx context.Context, c client.Client, p *corev1.Pod, change func(*corev1.PodStatus)) {
	GinkgoHelper()
	rewrite(ctx, c, p, func(ctx context.Context) error {
		was := p.DeepCopy()
		change(&p.Status)
		return c.Status().Patch(ctx, p, client.StrategicMergeFrom(was))
	})
}

// rewrite reads and writes an object until both succeed.
func rewrite(ctx context.Context, c client.Client, obj client.Object, write func(context.Context) error) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		if err := Get(ctx, c, obj); err != nil {
			return err
		}
		return write(ctx)
	}).WithContext(ctx).Should(Succeed())
}

// ShouldExist waits for an object and brings it up to date.
func ShouldExist(ctx context.Context, c client.Client, obj client.Object) {
	GinkgoHelper()
	Eventually(Get).WithContext(ctx).WithArguments(c, obj).Should(Succeed())
}

// ShouldVanish waits until an object does not exist any more.
func ShouldVanish(ctx context.Context, c client.Client, obj client.Object) {
	GinkgoHelper()
	Eventually(Get).WithContext(ctx).WithArguments(c, obj).Should(MatchError(apierrors.IsNotFound, "not found"))
}

// ShouldStayAbsent asserts that an object does not exist and does not appear.
func ShouldStayAbsent(ctx context.Context, c client.Client, obj client.Object) {
	GinkgoHelper()
	Consistently(Get).WithContext(ctx).WithArguments(c, obj).Should(MatchError(apierrors.IsNotFound, "not found"))
}

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
// has created the service account there.
func Create(ctx context.Context, c client.Client, objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		var err error
		Eventually(func() error {
			err = c.Create(ctx, obj)
			return err
		}).WithContext(ctx).ShouldNot(Satisfy(lacksServiceAccount))
		Expect(err).NotTo(HaveOccurred())
	}
}

// lacksServiceAccount reports whether a pod was rejected because its service
// account does not exist.
func lacksServiceAccount(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
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
	Eventually(func(ctx context.Context) error {
		if err := Get(ctx, c, obj); err != nil {
			return err
		}
		change(obj)
		return c.Update(ctx, obj)
	}).WithContext(ctx).Should(Succeed())
}

// SetPodStatus changes the status of a pod, as its kubelet would.
func SetPodStatus(ctx context.Context, c client.Client, p *corev1.Pod, change func(*corev1.PodStatus)) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		if err := Get(ctx, c, p); err != nil {
			return err
		}
		was := p.DeepCopy()
		change(&p.Status)
		return c.Status().Patch(ctx, p, client.StrategicMergeFrom(was))
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

package escapes

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/test/local"
)

// create creates objects.
func create(ctx context.Context, c client.Client, objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		Expect(c.Create(ctx, obj)).To(Succeed())
	}
}

// get brings an object up to date.
func get(ctx context.Context, c client.Client, obj client.Object) error {
	return c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

// read returns a function for Eventually that reads an object; an error is an error of the assertion.
func read[T client.Object](ctx context.Context, c client.Client, obj T) func() (T, error) {
	return func() (T, error) {
		now := obj.DeepCopyObject().(T)
		err := get(ctx, c, now)
		return now, err
	}
}

// edit changes an object as it is now.
func edit[T client.Object](ctx context.Context, c client.Client, obj T, change func(T)) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		if err := get(ctx, c, obj); err != nil {
			return err
		}
		change(obj)
		return c.Update(ctx, obj)
	}).WithContext(ctx).Should(Succeed())
}

// shouldExist waits for an object and brings it up to date.
func shouldExist(ctx context.Context, c client.Client, obj client.Object) {
	GinkgoHelper()
	Eventually(get).WithContext(ctx).WithArguments(c, obj).Should(Succeed())
}

// shouldStayAbsent asserts that an object does not exist and does not appear.
func shouldStayAbsent(ctx context.Context, c client.Client, obj client.Object) {
	GinkgoHelper()
	Consistently(get).WithContext(ctx).WithArguments(c, obj).Should(MatchError(apierrors.IsNotFound, "not found"))
}

// rejections returns the messages of the events that tell a tenant why an object is not synced down.
func rejections(ctx context.Context, t *local.Tenant, about client.Object) func() ([]string, error) {
	return events(ctx, t, about, "SyncRefused")
}

// warnings returns the messages of the events that tell a tenant that an object is over its quota.
func warnings(ctx context.Context, t *local.Tenant, about client.Object) func() ([]string, error) {
	return events(ctx, t, about, "QuotaExceeded")
}

// events returns the messages of a tenant's events about an object.
func events(ctx context.Context, t *local.Tenant, about client.Object, reason string) func() ([]string, error) {
	return func() ([]string, error) {
		list := &corev1.EventList{}
		if err := t.Client.List(ctx, list); err != nil {
			return nil, err
		}
		var messages []string
		for _, e := range list.Items {
			if e.Reason == reason && e.InvolvedObject.UID == about.GetUID() {
				messages = append(messages, e.Message)
			}
		}
		return messages, nil
	}
}

// shouldBeRejected asserts that the tenant is told why an object is not synced down, without the super cluster's names, and that
// it has no copy.
func shouldBeRejected(ctx context.Context, t *local.Tenant, obj client.Object, why string) {
	GinkgoHelper()
	Eventually(rejections(ctx, t, obj)).Should(ContainElement(ContainSubstring(why)))
	Expect(rejections(ctx, t, obj)()).NotTo(ContainElement(ContainSubstring(t.Key())))
	shouldStayAbsent(ctx, super.Client, superOf(t, obj))
}

// superOf returns an object with the super cluster's key of a tenant's object.
func superOf[T client.Object](t *local.Tenant, obj T) T {
	copied := obj.DeepCopyObject().(T)
	copied.SetResourceVersion("")
	copied.SetUID("")
	if obj.GetNamespace() == "" {
		copied.SetName(t.Super(obj.GetName()))
	} else {
		copied.SetNamespace(t.Super(obj.GetNamespace()))
	}
	return copied
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// pod returns a pod with one container.
func pod(ns, name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app.kubernetes.io/name": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example/app:1"}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

// amounts returns amounts of resources, by pairs.
func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

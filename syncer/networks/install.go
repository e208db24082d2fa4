package networks

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	definitions "github.com/virtualcluster/virtualcluster/config/networks"
)

// maxUserName bounds the name that a tenant's apiserver has for the platform.
const maxUserName = 256

// installer keeps the API of networks in a tenant as it should be.
type installer struct {
	cluster Cluster
	// platform is the user that the tenant's apiserver takes the platform for;
	// empty if that is not known yet.
	platform string
	// served is set when the tenant's apiserver has served the API.
	served bool
}

// learn makes the kinds that networks need known to the tenant's clients.
func (i *installer) learn() {
	for _, gvk := range []schema.GroupVersionKind{
		networkv1.GroupVersion.WithKind(networkv1.Kind),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"),
	} {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		i.cluster.Learn(&meta.RESTMapping{GroupVersionKind: gvk, Resource: plural, Scope: meta.RESTScopeRoot})
	}
}

// definition ensures the CRD, and reports whether it is being deleted.
func (i *installer) definition(ctx context.Context) (recalled bool, err error) {
	desired, err := definitions.CRD()
	if err != nil {
		return false, err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(desired)
	found := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: desired.Name}}
	err = ensure(ctx, i.cluster.GetClient(), found, func() { found.Spec = desired.Spec })
	switch {
	case err != nil:
		return false, err
	case found.DeletionTimestamp != nil:
		return true, nil
	case !apihelpers.IsCRDConditionTrue(found, apiextensionsv1.Established):
		return false, fmt.Errorf("CustomResourceDefinition %s is not served yet", desired.Name)
	}
	i.served = true
	return false, nil
}

// policy ensures the ValidatingAdmissionPolicy and its binding.
func (i *installer) policy(ctx context.Context) error {
	if i.platform == "" {
		var err error
		if i.platform, err = i.userName(ctx); err != nil {
			return err
		}
	}
	named := metav1.ObjectMeta{Name: policyName}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named}
	return errors.Join(
		ensure(ctx, i.cluster.GetClient(), policy, func() { policy.Spec = policySpec(i.platform) }),
		ensure(ctx, i.cluster.GetClient(), binding, func() { binding.Spec = bindingSpec() }),
	)
}

// userName asks the tenant's apiserver for the name of the user of the
// connection.
func (i *installer) userName(ctx context.Context) (string, error) {
	asking, err := authenticationclient.NewForConfigAndClient(i.cluster.GetConfig(), i.cluster.GetHTTPClient())
	if err != nil {
		return "", fmt.Errorf("set up a client: %w", err)
	}
	answer, err := asking.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the tenant's apiserver for the platform's user: %w", err)
	}
	name := answer.Status.UserInfo.Username
	if name == "" || len(name) > maxUserName {
		return "", errors.New("the tenant's apiserver has no usable name for the platform's user")
	}
	return name, nil
}

// ensure creates an object that does not exist, and sets its spec otherwise. One
// that is being deleted is left alone.
func ensure(ctx context.Context, c client.Client, obj client.Object, setSpec func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, c, obj, func() error {
		if obj.GetDeletionTimestamp() == nil {
			setSpec()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ensure %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

package plugintest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/plugins"
)

// onlyNamed is a validator of the simplest sort.
type onlyNamed struct{ plugins.TenantLocks }

func (*onlyNamed) Name() string                          { return "only-named" }
func (*onlyNamed) Kinds() []schema.GroupKind             { return []schema.GroupKind{{Kind: "Pod"}} }
func (o *onlyNamed) Locker(tenant string) plugins.Locker { return o.Of(tenant) }
func (*onlyNamed) Validate(_ context.Context, r plugins.Request) error {
	if r.Object.GetName() == "" {
		return plugins.Reject("pods must have a name")
	}
	return nil
}

func TestAGoodValidatorPasses(t *testing.T) {
	for _, name := range []string{"web", ""} {
		Run(t, Case{
			Registration: plugins.Registration{ID: "only-named", InitFn: func(plugins.Environment) (plugins.Validator, error) {
				return &onlyNamed{}, nil
			}},
			Tenants: [2]plugins.Tenant{{Key: "red"}, {Key: "blue"}},
			Object:  &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red-shop", Name: name}},
			Kind:    corev1.SchemeGroupVersion.WithKind("Pod"),
		})
	}
}

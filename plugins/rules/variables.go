package rules

import (
	"reflect"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubecel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/expression"
	"github.com/virtualcluster/virtualcluster/plugins"
)

// Names of the variables.
const (
	objectVariable    = "object"
	oldObjectVariable = "oldObject"
	tenantVariable    = "tenant"
	usedVariable      = "used"
	hardVariable      = "hard"
)

// Tenant is the type of the variable tenant. Wrong field names are found when a
// rule is compiled.
type Tenant struct {
	// Name and Namespace are those of the VirtualCluster.
	Name      string `cel:"name"`
	Namespace string `cel:"namespace"`
	// Key is the cluster key.
	Key string `cel:"key"`
	// Labels are the labels of the VirtualCluster.
	Labels map[string]string `cel:"labels"`
}

func newEnvironment() (*cel.Env, error) {
	tenant := reflect.TypeFor[Tenant]()
	quantities := cel.MapType(cel.StringType, kubecel.QuantityType)
	return expression.NewEnvironment(
		library.Quantity(),
		ext.NativeTypes(tenant, ext.ParseStructTags(true)),
		cel.Variable(objectVariable, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable(oldObjectVariable, cel.DynType),
		cel.Variable(tenantVariable, cel.ObjectType(tenant.String())),
		cel.Variable(usedVariable, quantities),
		cel.Variable(hardVariable, quantities),
	)
}

// variables returns the variables of a request. Those that are expensive are
// evaluated when a rule reads them.
func (r *Rules) variables(request plugins.Request, vc *tenancyv1alpha1.VirtualCluster) map[string]any {
	account := sync.OnceValues(func() (used, hard any) {
		has, most, err := r.usage(request)
		if err != nil {
			return types.WrapErr(err), types.WrapErr(err)
		}
		return quantities(has), quantities(most)
	})
	return map[string]any{
		objectVariable:    lazy(request.Object),
		oldObjectVariable: lazy(request.Was),
		tenantVariable:    Tenant{Name: vc.Name, Namespace: vc.Namespace, Key: request.Tenant.Key, Labels: vc.Labels},
		usedVariable:      func() any { used, _ := account(); return used },
		hardVariable:      func() any { _, hard := account(); return hard },
	}
}

// lazy converts an object when a rule reads it. A nil object is null.
func lazy(object client.Object) func() any {
	return sync.OnceValue(func() any {
		if object == nil {
			return types.NullValue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return types.WrapErr(err)
		}
		return content
	})
}

func quantities(list corev1.ResourceList) map[string]any {
	all := make(map[string]any, len(list))
	for name, quantity := range list {
		all[string(name)] = kubecel.Quantity{Quantity: &quantity}
	}
	return all
}

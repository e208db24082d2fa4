package process

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestCheckAPI(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	if err := CheckAPI(mapper); err == nil || !strings.Contains(err.Error(), "install the CRDs") {
		t.Errorf("got %v, want what to install", err)
	}
	mapper.Add(tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"), meta.RESTScopeNamespace)
	if err := CheckAPI(mapper); err != nil {
		t.Error(err)
	}
}

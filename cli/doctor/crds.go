package doctor

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/config/crd"
	"github.com/virtualcluster/virtualcluster/internal/version"
)

// crds compares the CustomResourceDefinitions with those of this version.
func crds(ctx context.Context, s *Super) Result {
	want, err := crd.All()
	if err != nil {
		return unread(err)
	}
	have := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, w := range want {
		found := &apiextensionsv1.CustomResourceDefinition{}
		err := s.Client.Get(ctx, client.ObjectKeyFromObject(w), found)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return unread(fmt.Errorf("get CustomResourceDefinition %s: %w", w.Name, err))
		}
		have[w.Name] = found
	}
	return crdsVerdict(want, have)
}

// crdsVerdict compares definitions with those that should be there.
func crdsVerdict(want []*apiextensionsv1.CustomResourceDefinition, have map[string]*apiextensionsv1.CustomResourceDefinition) Result {
	const next = "Upgrade the installation: helm upgrade, or kubectl apply -k config/default"
	var missing, unserved, different []string
	for _, w := range want {
		found := have[w.Name]
		switch {
		case found == nil:
			missing = append(missing, w.Name)
		case !apihelpers.IsCRDConditionTrue(found, apiextensionsv1.Established):
			unserved = append(unserved, w.Name)
		case !equality.Semantic.DeepEqual(schemas(w), schemas(found)):
			different = append(different, w.Name)
		}
	}
	switch {
	case len(missing) > 0:
		return failed(next, "missing: %s", enumerate(missing))
	case len(unserved) > 0:
		return failed("See its conditions: kubectl describe crd "+unserved[0], "not served: %s", enumerate(unserved))
	case len(different) > 0:
		return warning("Upgrade the installation, or use the kubectl vc of its version",
			"of another version than kubectl vc %s: %s", version.String(), enumerate(different))
	}
	return ok("all %d are served, in the version of kubectl vc", len(want))
}

// schemas returns the schemas of the served versions of a definition.
func schemas(c *apiextensionsv1.CustomResourceDefinition) map[string]*apiextensionsv1.CustomResourceValidation {
	found := map[string]*apiextensionsv1.CustomResourceValidation{}
	for _, v := range c.Spec.Versions {
		if v.Served {
			found[v.Name] = v.Schema
		}
	}
	return found
}

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typedv1 "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/config/crd"
)

const establishedPoll = 20 * time.Millisecond

// installCRDs brings the tenancy API in the super cluster to the version of
// this program.
func installCRDs(ctx context.Context, super *rest.Config) error {
	client, err := clientset.NewForConfig(super)
	if err != nil {
		return fmt.Errorf("make a client for CRDs: %w", err)
	}
	crds, err := crd.All()
	if err != nil {
		return err
	}
	for _, definition := range crds {
		if err := installCRD(ctx, client.ApiextensionsV1().CustomResourceDefinitions(), definition); err != nil {
			return fmt.Errorf("install CRD %s: %w", definition.Name, err)
		}
	}
	return nil
}

func installCRD(
	ctx context.Context, crds typedv1.CustomResourceDefinitionInterface, definition *apiextensionsv1.CustomResourceDefinition,
) error {
	data, err := json.Marshal(definition)
	if err != nil {
		return err
	}
	_, err = crds.Patch(ctx, definition.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: name, Force: new(true)})
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, establishedPoll, true, func(ctx context.Context) (bool, error) {
		current, err := crds.Get(ctx, definition.Name, metav1.GetOptions{})
		return err == nil && isEstablished(current), err
	})
}

func isEstablished(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established)
}

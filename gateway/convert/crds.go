package convert

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/convert/naming"
	"github.com/virtualcluster/virtualcluster/gateway/convert/resources"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// MaxCRDs is how many CRDs a tenant may have: each one takes about a megabyte in
// the super cluster's apiserver.
const MaxCRDs = 100

// errNoResource is the answer of an apiserver about a path of no resource.
var errNoResource = &apierrors.StatusError{ErrStatus: apierrors.NewGenericServerResponse(
	http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, true).ErrStatus}

// kindOf returns the kind of a request.
func (h *Handler) kindOf(ctx context.Context, info *request.RequestInfo) (kinds.Kind, error) {
	if kinds.IsNative(info.APIGroup) {
		return kinds.Find(info.APIGroup, info.Resource), nil
	}
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	crd, ok := h.CRDs.Find(h.Tenant, resource)
	if !ok {
		var err error
		if crd, err = h.readCRD(ctx, resource); err != nil {
			return kinds.Kind{}, err
		}
	}
	isNamespaced := crd.Spec.Scope == apiextensionsv1.NamespaceScoped
	return kinds.Custom(resource.Group, resource.Resource, crd.Spec.Names.Kind, isNamespaced), nil
}

// readCRD reads the CRD of a resource that the index lacks, which may lag.
func (h *Handler) readCRD(ctx context.Context, resource schema.GroupResource) (*resources.CRD, error) {
	super, err := naming.Namer{Key: h.Tenant}.CRD(resource.String())
	if err != nil {
		return nil, errNoResource
	}
	crd := &resources.CRD{}
	path := "/apis/" + apiextensionsv1.SchemeGroupVersion.String() + "/customresourcedefinitions/" + super
	code, err := h.send(ctx, h.Super, http.MethodGet, path, nil, crd)
	switch {
	case err != nil:
		return nil, err
	case code == http.StatusNotFound, code == http.StatusOK && crd.Labels[names.Converted] != h.Tenant:
		return nil, errNoResource
	case code != http.StatusOK:
		return nil, fmt.Errorf("read a CRD of the tenant: the super cluster responded %d", code)
	}
	h.CRDs.Set(crd)
	return crd, nil
}

// checkCRDs returns an error if the request would make one CRD too many. Requests
// at the same time can make some more.
func (c *call) checkCRDs() error {
	if !c.kind.IsCRD() || c.info.Verb != verbCreate && !c.applies {
		return nil
	}
	crds, _ := c.CRDs.All(c.Tenant)
	_, exists := c.CRDs.Find(c.Tenant, schema.ParseGroupResource(c.name))
	if len(crds) < MaxCRDs || c.applies && exists {
		return nil
	}
	return apierrors.NewForbidden(c.kind.GroupResource(), c.name, errTooMany)
}

var errTooMany = fmt.Errorf("there are %d CRDs, which is the limit", MaxCRDs)

// checkChurn returns an error if the request could change what the super cluster
// serves, and the tenant has done so too often. The deletion of the tenant itself
// does not come through the gateway.
func (c *call) checkChurn() error {
	if !c.kind.IsCRD() || !slices.Contains(changingVerbs, c.info.Verb) {
		return nil
	}
	wait := c.Churn.Wait(c.Tenant)
	if wait == 0 {
		return nil
	}
	return tooOften(wait, fmt.Sprintf("CRDs were deleted, or served other versions, too often: "+
		"%d times at once and %d times a minute are possible. Until then, CRDs can only be created",
		resources.ChurnBurst, resources.ChurnPerMinute))
}

// changingVerbs are those by which a CRD can serve less than before, or something
// else: its status decides about that, too.
var changingVerbs = []string{verbUpdate, verbPatch, verbDelete, verbDeleteCollection}

// admitCRD waits until the tenant's service account may use the custom resources
// of a CRD that was created: vc-manager permits it. The CRD exists even if this
// takes longer.
func (c *call) admitCRD(ctx context.Context, crd *resources.CRD) {
	c.CRDs.Set(crd)
	_ = c.waitForPermission(ctx, &authorizationv1.ResourceAttributes{
		Verb: verbList, Group: crd.Spec.Group, Version: "*", Resource: crd.Spec.Names.Plural,
	})
}

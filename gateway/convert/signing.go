package convert

import (
	"context"
	"fmt"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/virtualcluster/virtualcluster/gateway/convert/certificates"
	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
)

// prepare makes of a certificate signing request what an apiserver stores. Before
// is nil for one that is created.
func (c *call) prepare(ctx context.Context, before, after document.Object) error {
	if !c.kind.IsSigningRequest() {
		return nil
	}
	changed, err := signingRequest(after)
	if err != nil {
		return badRequest(err)
	}
	var wrong field.ErrorList
	if before == nil {
		who, _ := request.UserFrom(ctx)
		wrong = certificates.Create(who, changed)
	} else {
		wrong, err = c.changeRequest(ctx, before, changed)
	}
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: c.kind.Group, Kind: c.kind.Kind}, nameOf(after), wrong)
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(changed)
	if err != nil {
		return err
	}
	after["spec"], after["status"] = written["spec"], written["status"]
	return nil
}

// changeRequest keeps of a changed request what its user cannot change.
func (c *call) changeRequest(ctx context.Context, before document.Object, changed *certificates.Request) (field.ErrorList, error) {
	current, err := signingRequest(before)
	if err != nil {
		return nil, err
	}
	wrong := certificates.Change(c.info.Subresource, current, changed, time.Now())
	switch {
	case c.info.Subresource == certificates.Approval:
		err = c.confirmSigner(ctx, "approve", current.Spec.SignerName)
	case c.info.Subresource == certificates.Status && !equality.Semantic.DeepEqual(current.Status, changed.Status):
		err = c.confirmSigner(ctx, "sign", current.Spec.SignerName)
	}
	return wrong, err
}

func signingRequest(object document.Object) (*certificates.Request, error) {
	parsed := &certificates.Request{}
	return parsed, runtime.DefaultUnstructuredConverter.FromUnstructured(object, parsed)
}

// confirmSigner returns an error if the user may not act for a signer, which may be
// permitted for all of a domain.
func (c *call) confirmSigner(ctx context.Context, verb, signer string) error {
	who, _ := request.UserFrom(ctx)
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := c.Authorize.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: verb, Name: name, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if decision == authorizer.DecisionAllow {
			return nil
		}
		if err != nil {
			return apierrors.NewInternalError(err)
		}
	}
	missing := fmt.Errorf("user not permitted to %s requests with signerName %q", verb, signer)
	return apierrors.NewForbidden(c.kind.GroupResource(), c.name, missing)
}

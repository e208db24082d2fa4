package convert

import (
	"fmt"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/requester"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

// maxAudiences is how many audiences a token is reviewed for: each is a request of
// the super cluster.
const maxAudiences = 8

// reviewToken answers whose token one is. The tenant's service accounts alone have
// tokens that it can review: no others are shown to the super cluster.
func (c *call) reviewToken(w http.ResponseWriter, r *http.Request, object document.Object) error {
	answered, err := answer(object, &authenticationv1.TokenReview{}, func(review *authenticationv1.TokenReview) error {
		at := field.NewPath("spec")
		switch {
		case review.Spec.Token == "":
			return c.wrong(field.Required(at.Child("token"), "token is required for TokenReview in authentication"))
		case len(review.Spec.Audiences) > maxAudiences:
			return c.wrong(field.TooMany(at.Child("audiences"), len(review.Spec.Audiences), maxAudiences))
		}
		audiences := review.Spec.Audiences
		if len(audiences) == 0 {
			audiences = []string{converted.ClusterAudience}
		}
		review.Status = authenticationv1.TokenReviewStatus{}
		for _, audience := range audiences {
			who, err := c.Accounts.AuthenticateFor(r.Context(), review.Spec.Token, r.RemoteAddr, audience)
			if err != nil {
				return fmt.Errorf("review a token: %w", err)
			}
			if who != nil {
				review.Status.Authenticated, review.Status.User = true, requester.InfoOf(who)
				review.Status.Audiences = append(review.Status.Audiences, audience)
			}
		}
		if review.Status.Authenticated {
			review.Status.User.Groups = append(slices.Clone(review.Status.User.Groups), user.AllAuthenticated)
		}
		return nil
	})
	if err != nil {
		return err
	}
	answered["apiVersion"], answered["kind"] = authenticationv1.SchemeGroupVersion.String(), c.kind.Kind
	return writeDocument(w, r, http.StatusCreated, answered)
}

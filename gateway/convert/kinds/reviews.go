package kinds

const reviewsGroup = "authorization.k8s.io"

// reviews returns the kinds by which users ask what they may do, and who they
// are.
func reviews() []Kind {
	return []Kind{
		{Group: reviewsGroup, Resource: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview", Class: Answered},
		{Group: reviewsGroup, Resource: "selfsubjectrulesreviews", Kind: "SelfSubjectRulesReview", Class: Answered},
		{Group: reviewsGroup, Resource: "subjectaccessreviews", Kind: "SubjectAccessReview", Class: Answered},
		{
			Group: reviewsGroup, Resource: "localsubjectaccessreviews", Kind: "LocalSubjectAccessReview", Class: Answered,
			InNamespaces: true,
		},
		{Group: tokensGroup, Resource: "tokenreviews", Kind: "TokenReview", Class: Answered},
		{Group: tokensGroup, Resource: "selfsubjectreviews", Kind: "SelfSubjectReview", Class: Answered},
	}
}

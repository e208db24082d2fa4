package kinds

// Tokens are issued by the tenant's apiserver for one object: tokens of a
// service account that are bound to the object, so that they expire with it.
type Tokens struct {
	// ServiceAccount is the name of the account, in the namespace of the
	// object.
	ServiceAccount string
	// Wanted are the tokens by their keys in the Secret.
	Wanted map[string]Token
}

// Token is one token of an object.
type Token struct {
	// Audience is the audience of the token; empty for the tenant's apiserver.
	Audience string
	// ExpirationSeconds is the minimum lifetime; nil for the apiserver's
	// default.
	ExpirationSeconds *int64
}

package kinds

// Tokens are what the tenant's apiserver issues for one object: tokens of a service account that are bound to the object, so that they end
// with it.
type Tokens struct {
	// ServiceAccount is the account's name, in the namespace of the object.
	ServiceAccount string
	// Wanted are the tokens, by the keys that the Secret has them under.
	Wanted map[string]Token
}

// Token is one of an object's.
type Token struct {
	// Audience is whom the token is for; empty is the tenant's apiserver.
	Audience string
	// ExpirationSeconds is how long it lives at least; nil leaves that to the apiserver.
	ExpirationSeconds *int64
}

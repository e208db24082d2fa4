package identity

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/virtualcluster/virtualcluster/gateway/forward"
	"github.com/virtualcluster/virtualcluster/internal/converted"
)

// ErrAmbiguous are credentials that a server may read differently than the gateway.
var ErrAmbiguous = errors.New("the credentials are ambiguous: send one token or password, " +
	"as Authorization: Bearer TOKEN or Basic PASSWORD, or a token as a WebSocket protocol")

// tokenOf returns the bearer token of a request; empty if it has none.
func tokenOf(header http.Header) (string, error) {
	values, protocols := header.Values("Authorization"), forward.TokensIn(header)
	switch {
	case len(values)+len(protocols) > 1:
		return "", ErrAmbiguous
	case len(protocols) == 1:
		token, err := base64.RawURLEncoding.Strict().DecodeString(protocols[0])
		if err != nil || len(token) == 0 {
			return "", ErrAmbiguous
		}
		return string(token), nil
	}
	words := strings.Fields(header.Get("Authorization"))
	switch {
	case len(words) == 0:
		return "", nil
	case len(words) == 2 && strings.EqualFold(words[0], "bearer"):
		return words[1], nil
	case len(words) == 2 && strings.EqualFold(words[0], "basic"):
		return "", nil
	}
	return "", ErrAmbiguous
}

// signerOf returns the tenant that can verify a token, by the key that it names;
// empty for none that is known. Tokens of converted tenants are signed by the super
// cluster, and name the tenant in their audiences, before the gateway knows it too.
func signerOf(token string, finder Finder) (clusterKey string) {
	head, rest, _ := strings.Cut(token, ".")
	var header struct {
		KeyID string `json:"kid"`
	}
	if decode(head, &header); header.KeyID != "" {
		if t := finder.ByKeyID(header.KeyID); t != nil {
			return t.Key
		}
	}
	payload, _, _ := strings.Cut(rest, ".")
	var claims struct {
		Audiences []string `json:"aud"`
	}
	decode(payload, &claims)
	for _, audience := range claims.Audiences {
		key := converted.OfAudience(audience)
		if t := finder.ByKey(key); key != "" && (t == nil || t.IsConverted()) {
			return key
		}
	}
	return ""
}

// decode decodes a part of a JWT, unverified; nothing from one that is none.
func decode(part string, into any) {
	if data, err := base64.RawURLEncoding.DecodeString(part); err == nil {
		_ = json.Unmarshal(data, into) // it is another kind of token
	}
}

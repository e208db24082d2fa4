package identity

import (
	"errors"
	"net/http"
	"testing"
)

// TestTokenOf: the token is the one that a server reads, and what two servers may
// read differently is none.
func TestTokenOf(t *testing.T) {
	const begin, encoded = "base64url.bearer.authorization.k8s.io.", "dG9rZW4" // of "token"
	for _, tc := range []struct {
		authorization, protocols []string
		want                     string
		fails                    bool
	}{
		{},
		{authorization: []string{""}},
		{authorization: []string{"Bearer token"}, want: "token"},
		{authorization: []string{" bearer  token "}, want: "token"},
		{authorization: []string{"BEARER\ttoken"}, want: "token"},
		{authorization: []string{"Basic password"}},
		{protocols: []string{"v4.channel.k8s.io, " + begin + encoded}, want: "token"},
		{protocols: []string{"Base64URL.bearer.authorization.k8s.io." + encoded, "v4.channel.k8s.io"}, want: "token"},
		{protocols: []string{"v4.channel.k8s.io"}},

		{authorization: []string{"Bearer"}, fails: true},
		{authorization: []string{"token"}, fails: true},
		{authorization: []string{"Token token"}, fails: true},
		{authorization: []string{"Bearer: token"}, fails: true},
		{authorization: []string{"Bearer token more"}, fails: true},
		{authorization: []string{"Basic password more"}, fails: true},
		{authorization: []string{"Bearer token", "Bearer token"}, fails: true},
		{authorization: []string{"", "Bearer token"}, fails: true},
		{authorization: []string{"Bearer token"}, protocols: []string{begin + encoded}, fails: true},
		{authorization: []string{"Basic password"}, protocols: []string{begin + encoded}, fails: true},
		{protocols: []string{begin + encoded + ", " + begin + encoded}, fails: true},
		{protocols: []string{begin + encoded, begin + encoded}, fails: true},
		{protocols: []string{begin + encoded + "="}, fails: true},
		{protocols: []string{begin + "dG9rZW5"}, fails: true}, // bits that decoders ignore
		{protocols: []string{begin}, fails: true},
	} {
		header := http.Header{"Authorization": tc.authorization, "Sec-Websocket-Protocol": tc.protocols}
		if got, err := tokenOf(header); got != tc.want || errors.Is(err, ErrAmbiguous) != tc.fails {
			t.Errorf("%v: got %q, %v", header, got, err)
		}
	}
}

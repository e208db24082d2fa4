package convert

import (
	"net/http"
	"strings"
	"testing"
)

func TestStrictErrors(t *testing.T) {
	const deployments = "/apis/apps/v1/namespaces/shop/deployments"
	for name, tc := range map[string]struct {
		body string
		want []string // in the error; nil for none
	}{
		"nothing wrong":   {`{"spec":{"replicas":1}}`, nil},
		"unknown fields":  {`{"spec":{"unknown":1}}`, nil}, // the super cluster reports them
		"twice":           {`{"spec":{"replicas":1,"replicas":2,"paused":true,"paused":true}}`, []string{`duplicate field "spec.replicas"`, `duplicate field "spec.paused"`}},
		"both":            {`{"spec":{"unknown":1,"replicas":1,"replicas":2}}`, []string{`strict decoding error: `, `unknown field "spec.unknown"`, `duplicate field "spec.replicas"`}},
		"of a wrong type": {`{"spec":{"replicas":{},"replicas":2}}`, []string{`duplicate field "spec.replicas"`}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := callOf(t, http.MethodPost, deployments)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.parse(jsonType, []byte(tc.body))
			if (err == nil) != (tc.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q", err, part)
				}
			}
		})
	}
}

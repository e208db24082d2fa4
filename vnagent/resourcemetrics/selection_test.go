package resourcemetrics

import (
	"net/url"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSelection(t *testing.T) {
	web := metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}
	for name, tc := range map[string]struct {
		request request
		query   string
		want    bool
	}{
		"all":                  {request{resource: pods}, "", true},
		"by name":              {request{resource: pods, name: "web"}, "", true},
		"by another name":      {request{resource: pods, name: "we"}, "", false},
		"by label":             {request{resource: pods}, "labelSelector=app%3Dweb", true},
		"by another label":     {request{resource: pods}, "labelSelector=app%21%3Dweb", false},
		"by a set":             {request{resource: pods}, "labelSelector=app+in+(a,web)", true},
		"by field":             {request{resource: pods}, "fieldSelector=metadata.name%3Dweb,metadata.namespace%3Dshop", true},
		"by another namespace": {request{resource: pods}, "fieldSelector=metadata.namespace%3Ddefault", false},
		"what means nothing":   {request{resource: pods}, "limit=1&resourceVersion=0", true},
	} {
		t.Run(name, func(t *testing.T) {
			query, err := url.ParseQuery(tc.query)
			if err != nil {
				t.Fatal(err)
			}
			s, err := selectionOf(tc.request, query)
			if err != nil || s.matches(web) != tc.want {
				t.Errorf("got %v (%v), want %v", !tc.want, err, tc.want)
			}
		})
	}
}

func TestSelectionRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ resource, parameter, value, want string }{
		"half a label":    {pods, "labelSelector", "app in (", "labelSelector"},
		"half a field":    {pods, "fieldSelector", "metadata.name", "fieldSelector"},
		"another field":   {pods, "fieldSelector", "spec.nodeName=node-0", `"spec.nodeName" is not supported`},
		"labels of nodes": {nodes, "labelSelector", "zone=a", `leave "zone=a" out`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := selectionOf(request{resource: tc.resource}, url.Values{tc.parameter: {tc.value}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

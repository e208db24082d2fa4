package projects

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

// openAPI describes what is served. kubectl create needs it, and kubectl
// explain. It has PATCH operations that are not served: kubectl looks for the
// parameters of all verbs of a kind there.
//
//go:embed openapi.json
var openAPI []byte

// addOpenAPI serves the description, in its version 3.
func addOpenAPI(mux *http.ServeMux) error {
	document := &spec3.OpenAPI{}
	if err := json.Unmarshal(openAPI, document); err != nil {
		return fmt.Errorf("read openapi.json: %w", err)
	}
	path := "apis/" + projectsv1alpha1.GroupVersion.String()
	service := handler3.NewOpenAPIService()
	service.UpdateGroupVersion(path, document)
	mux.HandleFunc("GET /openapi/v3", service.HandleDiscovery)
	mux.HandleFunc("GET /openapi/v3/"+path, service.HandleGroupVersion)
	return nil
}

package chain

import (
	"context"
	"maps"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	openapi "k8s.io/kube-aggregator/pkg/controllers/openapi/aggregator"
	openapiaggregator "k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// aggregatorUser is the user as which upstream's aggregator reads documents.
func aggregatorUser() user.Info { return &user.DefaultInfo{Name: "system:aggregator"} }

// all returns the aggregated APIs.
func (a *apiAggregator) all() map[schema.GroupVersion]*remoteAPI {
	if a == nil {
		return nil
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return maps.Clone(a.remotes)
}

// mergeDocuments adds the OpenAPI documents of version 2 of aggregated APIs to
// another one. As in upstream, those that cannot be read are left out.
func (a *apiAggregator) mergeDocuments(into *spec.Swagger) {
	downloader := openapi.NewDownloader()
	for version, remote := range a.all() {
		document, _, status, err := downloader.Download(limitDocument(remote), "")
		if err != nil || status != http.StatusOK || document == nil {
			continue
		}
		own := openapiaggregator.FilterSpecByPathsWithoutSideEffects(document, []string{"/apis/" + version.String() + "/"})
		_ = openapiaggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(into, own)
	}
}

// documents returns where the OpenAPI documents of version 3 of aggregated APIs
// are.
func (a *apiAggregator) documents() map[string]handler3.OpenAPIV3DiscoveryGroupVersion {
	found := map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	for version, remote := range a.all() {
		var list handler3.OpenAPIV3Discovery
		ctx, cancel := context.WithTimeout(apirequest.WithUser(a.tenant.life, aggregatorUser()), patience)
		_, err := readDocument(ctx, limitDocument(remote), openAPIV3, "application/json", &list)
		cancel()
		path := "apis/" + version.String()
		if document, ok := list.Paths[path]; ok && err == nil {
			found[path] = document
		}
	}
	return found
}

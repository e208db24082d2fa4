package chain

import (
	"cmp"
	"maps"
	"net/http"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/util/responsewriter"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/views"
)

// discover answers upstream's requests of discovery with the response of the
// Service. Upstream decodes it in a goroutine that does not recover. A tenant
// writes what is decoded there, so it is decoded once here before.
func (a *remoteAPI) discover(w http.ResponseWriter, r *http.Request) {
	defer views.Recovered(func(panicked error) {
		logPanic(panicked, "Panicked on the discovery document of an aggregated API")
		unavailable(w, r, errNotAvailable)
	})
	response := responsewriter.NewInMemoryResponseWriter()
	limited := &limitedWriter{ResponseWriter: response, left: maxDocument}
	a.proxy(limited, r)
	if limited.exceeded {
		unavailable(w, r, errTooLarge)
		return
	}
	if response.RespCode() == http.StatusOK {
		rehearse(strings.Trim(r.URL.Path, "/"), response.Data())
	}
	maps.Copy(w.Header(), response.Header())
	w.WriteHeader(cmp.Or(response.RespCode(), http.StatusOK))
	_, _ = w.Write(response.Data()) // the writer is in memory
}

// rehearse decodes a discovery document as upstream does. Only panics count:
// upstream handles errors.
func rehearse(path string, document []byte) {
	if path != apisSegment {
		var resources metav1.APIResourceList
		if runtime.DecodeInto(aggregatorscheme.Codecs.UniversalDecoder(), document, &resources) == nil {
			_, _ = endpoints.ConvertGroupVersionIntoToDiscovery(resources.APIResources)
		}
		return
	}
	if codecs, err := newDiscoveryCodecs(); err == nil {
		_ = runtime.DecodeInto(codecs.UniversalDecoder(), document, &apidiscovery.APIGroupDiscoveryList{})
	}
}

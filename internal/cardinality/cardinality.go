// Package cardinality keeps what tenants name out of the labels of upstream's
// metrics. These are of the process, which serves many tenants, and every value
// of a label makes a series that stays until the process ends. Here the values
// of a label are those of built-in APIs; upstream replaces all others by
// "unexpected".
package cardinality

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/metrics"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Enforce limits the labels of the metrics of the process, once. It has to be
// called before tenants are served: upstream looks for the limits of a metric when
// it is used for the first time.
func Enforce() { enforce() }

var enforce = sync.OnceFunc(func() { metrics.SetLabelAllowList(Limits()) })

// Limits returns the values that labels may have, in the form of kube-apiserver's
// flag --allow-metric-labels: keys are METRIC,LABEL, and values VALUE,VALUE.
func Limits() map[string]string {
	known := knownValues()
	limits := map[string]string{}
	for _, r := range restrictions {
		for _, metric := range r.metrics {
			for _, label := range r.labels {
				limits[metric+","+label] = ""
				if !r.unknown {
					limits[metric+","+label] = strings.Join(known[label], ",")
				}
			}
		}
	}
	return limits
}

// subresources are those of built-in APIs. The path of a request can have any.
var subresources = []string{
	"", "approval", "attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "log", "portforward", "proxy",
	"resize", "scale", "status", "token",
}

// knownValues returns the values of labels that upstream and this project have.
func knownValues() map[string][]string {
	known := map[string][]string{subresource: subresources, "reason": {
		"", batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonCompletionsReached, batchv1.JobReasonDeadlineExceeded,
		batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded, batchv1.JobReasonPodFailurePolicy,
		batchv1.JobReasonSuccessPolicy,
	}}
	groups, versions, resources := sets.New(""), sets.New(""), sets.New("")
	for kind := range knownKinds() {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		groups.Insert(kind.Group)
		versions.Insert(kind.Version)
		resources.Insert(plural.Resource)
	}
	known[group], known[version], known[resource] = sets.List(groups), sets.List(versions), sets.List(resources)
	for code := http.StatusContinue; code < 600; code++ {
		if http.StatusText(code) != "" {
			known["code"] = append(known["code"], strconv.Itoa(code))
		}
	}
	return known
}

// knownKinds returns the kinds of objects of the built-in APIs and of this
// project.
func knownKinds() sets.Set[schema.GroupVersionKind] {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, tenancyv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	// The package of this one is not a dependency of the module.
	kinds := sets.New(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	for kind, is := range scheme.AllKnownTypes() {
		if _, ok := reflect.TypeAssert[metav1.ObjectMetaAccessor](reflect.New(is)); ok { // no list, and no options
			kinds.Insert(kind)
		}
	}
	return kinds
}

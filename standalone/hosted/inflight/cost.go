package inflight

import (
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// baseCost is the memory of any request. bodyFactor is the memory of each
	// byte of a body, decoded; longestBody is upstream's limit.
	baseCost    = 64 << 10
	bodyFactor  = 16
	longestBody = 3 << 20
	// objectFactor is the memory of each byte of a stored object that a request
	// reads.
	objectFactor = 2
	// Lists from a cache are encoded object by object, unless they are
	// converted as a whole. Those from etcd are decoded as a whole.
	listFactor, convertFactor = 1, 8
	watchVerb                 = "watch"
)

// cost estimates the memory of a request to a control plane. With a cache,
// lists do not decode what is stored.
func cost(r *http.Request, info *apirequest.RequestInfo, stored Stored, cached bool) int64 {
	sum := int64(baseCost)
	if r.Body != nil && r.Body != http.NoBody {
		length := r.ContentLength
		if length < 0 || length > longestBody {
			length = longestBody
		}
		sum += length * bodyFactor
	}
	if !info.IsResourceRequest {
		return sum
	}
	sum += stored.Largest * objectFactor
	if info.Verb != "list" && info.Verb != "deletecollection" {
		return sum
	}
	query := r.URL.Query()
	listed := stored.Bytes
	if limit, err := strconv.ParseInt(query.Get("limit"), 10, 32); err == nil && limit > 0 && stored.Largest > 0 {
		listed = min(listed, limit*stored.Largest)
	}
	exact := query.Get("continue") != "" || query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
	if !cached || exact || isConverted(r) {
		return sum + listed*convertFactor
	}
	return sum + listed*listFactor
}

// isConverted reports whether a list is converted as a whole before the first
// byte of the response: to a table, to YAML, or with indentation, which browsers
// and command-line tools get unasked.
func isConverted(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	for _, part := range []string{"yaml", "as=", "pretty"} {
		if strings.Contains(accept, part) {
			return true
		}
	}
	if strings.Contains(r.URL.RawQuery, "pretty") {
		return true
	}
	for _, tool := range []string{"curl", "Wget", "Mozilla/5.0"} {
		if strings.HasPrefix(r.UserAgent(), tool) {
			return true
		}
	}
	return false
}

// watchCost estimates the memory of the beginning of a long-running request. A
// watch that begins with a list encodes one object at a time.
func watchCost(r *http.Request, info *apirequest.RequestInfo, stored Stored) int64 {
	if !info.IsResourceRequest || info.Verb != watchVerb {
		return 0
	}
	query := r.URL.Query()
	version := query.Get("resourceVersion")
	if initial, _ := strconv.ParseBool(query.Get("sendInitialEvents")); !initial && version != "" && version != "0" {
		return 0
	}
	return baseCost + stored.Bytes*listFactor
}

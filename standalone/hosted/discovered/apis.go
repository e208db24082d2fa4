package discovered

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"weak"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// APIs are the APIs that a control plane serves. They never change: what is
// returned must not be modified.
type APIs struct {
	groups    *metav1.APIGroupList
	resources map[schema.GroupVersion]*metav1.APIResourceList
	// failed are the versions whose server does not respond.
	failed map[schema.GroupVersion]error
	// mapper returns the mapper, which is made when it is first needed.
	mapper func() (meta.RESTMapper, error)
}

// newAPIs decodes documents of aggregated discovery.
func newAPIs(documents [][]byte) (*APIs, error) {
	var all apidiscovery.APIGroupDiscoveryList
	for _, document := range documents {
		var list apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal(document, &list); err != nil {
			return nil, fmt.Errorf("decode a document of discovery: %w", err)
		}
		all.Items = append(all.Items, list.Items...)
	}
	a := &APIs{}
	a.groups, a.resources, a.failed = discovery.SplitGroupsAndResources(all)
	a.mapper = sync.OnceValues(func() (meta.RESTMapper, error) {
		resources, err := restmapper.GetAPIGroupResources(view{apis: a})
		if err != nil {
			return nil, err
		}
		return restmapper.NewDiscoveryRESTMapper(resources), nil
	})
	return a, nil
}

// view is the part of a discovery client that client-go's functions derive the
// others from.
type view struct {
	discovery.DiscoveryInterface // nil: they do not call it

	apis *APIs
}

var _ discovery.AggregatedDiscoveryInterface = view{}

// GroupsAndMaybeResources implements discovery.AggregatedDiscoveryInterface.
func (v view) GroupsAndMaybeResources() (
	*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error,
) {
	return v.apis.groups, v.apis.resources, v.apis.failed, nil
}

// ServerGroupsAndResources implements discovery.DiscoveryInterface.
func (v view) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(v)
}

// Shared keeps the APIs of many control planes, equal ones once. It forgets what
// no client uses any more.
type Shared struct {
	mu    sync.Mutex
	known map[sum]weak.Pointer[APIs]
}

// sum is the hash of documents.
type sum [sha256.Size]byte

// NewShared returns an empty Shared.
func NewShared() *Shared { return &Shared{known: map[sum]weak.Pointer[APIs]{}} }

// get returns the APIs of documents.
func (s *Shared) get(documents [][]byte) (*APIs, error) {
	key := sumOf(documents)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[key].Value(); known != nil {
		return known, nil
	}
	decoded, err := newAPIs(documents)
	if err != nil {
		return nil, err
	}
	s.known[key] = weak.Make(decoded)
	runtime.AddCleanup(decoded, s.forget, key)
	return decoded, nil
}

// forget removes APIs that have been garbage-collected, unless they were
// discovered again.
func (s *Shared) forget(key sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[key].Value() == nil {
		delete(s.known, key)
	}
}

// sumOf returns the hash of documents and of where each ends.
func sumOf(documents [][]byte) sum {
	var all []byte
	for _, document := range documents {
		each := sha256.Sum256(document)
		all = append(all, each[:]...)
	}
	return sha256.Sum256(all)
}

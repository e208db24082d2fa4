package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/virtualcluster/virtualcluster/cli/installation"
)

// servedResources returns the resources that an installation uses, by their group
// and version: those of its own objects, and those that its programs read and
// write for themselves.
func servedResources() map[schema.GroupVersion][]string {
	used := map[schema.GroupVersion][]string{
		{Group: "coordination.k8s.io", Version: "v1"}:   {"leases"},
		{Group: "discovery.k8s.io", Version: "v1"}:      {"endpointslices"},
		{Group: "events.k8s.io", Version: "v1"}:         {"events"},
		{Group: "authentication.k8s.io", Version: "v1"}: {"tokenreviews"},
		{Group: "authorization.k8s.io", Version: "v1"}:  {"subjectaccessreviews"},
		{Group: "networking.k8s.io", Version: "v1"}:     {"ipaddresses"},
	}
	for _, kind := range installation.Kinds() {
		used[kind.GroupVersion()] = append(used[kind.GroupVersion()], kind.Resource)
	}
	return used
}

// apis checks whether the super cluster serves the APIs that are used.
func apis(ctx context.Context, s *Super) Result {
	var missing []string
	for gv, resources := range servedResources() {
		served, err := s.served(ctx, gv)
		if err != nil {
			return unread(fmt.Errorf("list the resources of %s: %w", gv, err))
		}
		for _, resource := range resources {
			if !served[resource] {
				missing = append(missing, resource+"."+gv.String())
			}
		}
	}
	slices.Sort(missing)
	return apisVerdict(missing)
}

// apisVerdict judges by the resources that are not served, in the form
// resource.group/version.
func apisVerdict(missing []string) Result {
	required := slices.DeleteFunc(slices.Clone(missing), func(resource string) bool {
		return strings.HasPrefix(resource, "servicecidrs.") || strings.HasPrefix(resource, "ipaddresses.")
	})
	const next = "Enable them in the super cluster: --runtime-config of its kube-apiserver"
	switch {
	case len(missing) == 0:
		return ok("all APIs that are used are served")
	case len(required) == 0:
		return warning(next, "not served, and needed for serviceAddresses.pool: %s", enumerate(missing))
	}
	return failed(next, "not served: %s", enumerate(required))
}

// served returns the resources of a group version.
func (s *Super) served(ctx context.Context, gv schema.GroupVersion) (map[string]bool, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	data, err := s.HTTP.Get().AbsPath(path).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := &metav1.APIResourceList{}
	if err := json.Unmarshal(data, list); err != nil {
		return nil, err
	}
	served := map[string]bool{}
	for _, r := range list.APIResources {
		served[r.Name] = true
	}
	return served, nil
}

package doctor

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
)

const (
	// oldestMinor is the oldest minor version of Kubernetes 1 that a super cluster
	// may have. ServiceCIDRs, which tenants' Service addresses need, are served by
	// default since then.
	oldestMinor = 33
	// clientMinor is the minor version whose libraries this program has. They work
	// with the next one, too.
	clientMinor = 36
)

// kubernetesVersion checks the version of the super cluster.
func kubernetesVersion(ctx context.Context, s *Super) Result {
	data, err := s.HTTP.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return unread(fmt.Errorf("get the version of the super cluster: %w", err))
	}
	info := &apiversion.Info{}
	if err := json.Unmarshal(data, info); err != nil {
		return unread(fmt.Errorf("read the version of the super cluster: %w", err))
	}
	return versionVerdict(info.GitVersion)
}

// versionVerdict compares the version of a super cluster with the oldest and the
// newest one that are supported.
func versionVerdict(server string) Result {
	v, err := version.ParseGeneric(server)
	switch {
	case err != nil:
		return warning("Compare it with the requirements of VirtualCluster",
			"the super cluster reports version %q, which cannot be parsed", server)
	case v.Major() == 1 && v.Minor() < oldestMinor:
		return failed(fmt.Sprintf("Upgrade it to 1.%d or newer", oldestMinor),
			"the super cluster has Kubernetes %s, which is older than 1.%d", server, oldestMinor)
	case v.Major() == 1 && v.Minor() > clientMinor+1:
		return warning("Upgrade VirtualCluster and kubectl vc",
			"the super cluster has Kubernetes %s, and this kubectl vc was built for 1.%d", server, clientMinor)
	}
	return ok("%s", server)
}

package doctor

import (
	"context"

	"github.com/virtualcluster/virtualcluster/internal/orphans"
)

// leftovers checks whether VirtualClusters vanished and left namespaces.
func leftovers(ctx context.Context, s *Super) Result {
	found, err := orphans.Find(ctx, s.Client)
	if err != nil {
		return unread(err)
	}
	left := make([]string, 0, len(found))
	for i := range found {
		left = append(left, found[i].Name)
	}
	return leftoversVerdict(left)
}

func leftoversVerdict(left []string) Result {
	if len(left) == 0 {
		return ok("no namespaces are left of VirtualClusters that vanished")
	}
	return warning("List them, and delete those that are not needed any more: kubectl vc sweep",
		"%d namespaces are left of VirtualClusters that vanished without their finalizer: %s", len(left), enumerate(left))
}

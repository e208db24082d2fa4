package volumes

import (
	"fmt"
	"os"
	"path/filepath"
)

// Directory is where the volumes are.
type Directory struct {
	// Here is the directory as this process sees it, and There as the node does.
	Here, There string
	// Node is the name of the node.
	Node string
}

func (d Directory) there(volume string) string { return filepath.Join(d.There, volume) }

// make makes the directory of all volumes.
func (d Directory) make() error {
	if err := os.MkdirAll(d.Here, 0o711); err != nil { //nolint:gosec // containers with any user look for theirs in it
		return fmt.Errorf("make the directory of volumes: %w", err)
	}
	return nil
}

// add ensures the directory of a volume, and keeps its contents.
func (d Directory) add(volume string) error {
	path := filepath.Join(d.Here, volume)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("make the directory of a volume: %w", err)
	}
	// The containers' user is not known here. Only containers of the claim can reach the directory.
	if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // see above
		return fmt.Errorf("open the directory of a volume: %w", err)
	}
	return nil
}

// remove removes the directory of a volume, with what is in it.
func (d Directory) remove(volume string) error {
	if err := os.RemoveAll(filepath.Join(d.Here, volume)); err != nil {
		return fmt.Errorf("remove the directory of a volume: %w", err)
	}
	return nil
}

package volumes

import (
	"errors"
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
	err := d.within(func(root *os.Root) error {
		// The containers' user is not known here. Only containers of the claim
		// can reach the directory.
		return errors.Join(root.MkdirAll(volume, 0o700), root.Chmod(volume, 0o777))
	})
	if err != nil {
		return fmt.Errorf("make the directory of a volume: %w", err)
	}
	return nil
}

// remove removes the directory of a volume, with what is in it.
func (d Directory) remove(volume string) error {
	if err := d.within(func(root *os.Root) error { return root.RemoveAll(volume) }); err != nil {
		return fmt.Errorf("remove the directory of a volume: %w", err)
	}
	return nil
}

// within calls f with the directory of all volumes, which no name and no
// symbolic link leads out of.
func (d Directory) within(f func(*os.Root) error) error {
	root, err := os.OpenRoot(d.Here)
	if err != nil {
		return err
	}
	return errors.Join(f(root), root.Close())
}

//go:build !linux

package app

import (
	"errors"

	"github.com/spf13/cobra"
)

// newNodeCommand returns a command that fails with the reason.
func newNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:    nodeCommand,
		Hidden: true,
		RunE:   func(*cobra.Command, []string) error { return errors.New("a node needs Linux") },
	}
}

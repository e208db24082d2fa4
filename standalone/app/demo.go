package app

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
)

func newDemoCommand() *cobra.Command {
	return &cobra.Command{Use: "demo", RunE: func(*cobra.Command, []string) error { return errors.New("not yet") }}
}

func newRunCommand() *cobra.Command {
	return &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return errors.New("not yet") }}
}

const defaultDataDir = "./.vc"

var _ = os.Getenv
var _ context.Context

package app

import (
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/virtualcluster/virtualcluster/standalone/demo"
)

// defaultDataDir is where `run` keeps its data.
const defaultDataDir = "./.vc"

func newRunCommand() *cobra.Command {
	opts := DefaultOptions()
	opts.DataDir, opts.Port = defaultDataDir, 0
	command := &cobra.Command{
		Use:   "run",
		Short: "Run a super cluster with two tenants, and print how to use them",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			out := command.OutOrStdout()
			return Run(command.Context(), opts, out, func(ctx context.Context, instance *Instance) error {
				if err := addTenants(ctx, instance, opts.Nodes.image(), out); err != nil {
					return err
				}
				<-ctx.Done()
				return nil
			})
		},
	}
	opts.AddFlags(command.Flags())
	command.Flags().Lookup("port").DefValue = "the last one, or a free one"
	return command
}

// addTenants makes red and blue, unless they are there, and tells how to use
// them.
func addTenants(ctx context.Context, instance *Instance, image string, out io.Writer) error {
	admin, err := demo.NewAdmin(instance.Super)
	if err != nil {
		return err
	}
	tenants := []string{"red", "blue"}
	for _, tenant := range tenants {
		if err := admin.Create(ctx, tenant, ""); err != nil {
			return err
		}
	}
	for _, name := range tenants {
		tenant, err := admin.Connect(ctx, name)
		if err != nil {
			return err
		}
		if err := instance.Dir.WriteFile(name+".kubeconfig", tenant.Kubeconfig); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(out, advice(instance.Dir.Path(), image, hasKubectl()))
	return err
}

func hasKubectl() bool {
	_, err := exec.LookPath("kubectl")
	return err == nil
}

// advice is what to type next.
func advice(dir, image string, kubectl bool) string {
	text := fmt.Sprintf(`
Two tenants are here. In another terminal:

  cd %s
  kubectl --kubeconfig red.kubeconfig create deployment web --replicas=3 --image=%s
  kubectl --kubeconfig red.kubeconfig get pods                # the tenant's own cluster
  kubectl --kubeconfig blue.kubeconfig get pods               # another tenant sees nothing of it
  kubectl --kubeconfig super.kubeconfig get pods -A           # the super cluster runs it
  kubectl --kubeconfig super.kubeconfig get virtualclusters   # and knows its tenants

Ctrl-C stops everything; the same command brings it back.
`, dir, image)
	if !kubectl {
		text += "There is no kubectl here: https://kubernetes.io/docs/tasks/tools/ tells how to get it.\n"
	}
	return text
}

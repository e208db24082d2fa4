package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/project"
)

func newProject(p *platform) *cobra.Command {
	c := &cobra.Command{
		Use:   "project",
		Short: "List, request and delete projects, and choose the one that kubectl uses by default",
		Long: "List the projects of which you are a member, request and delete your own, and choose the one that kubectl uses by default.\n\n" +
			"Unlike the other commands, these are for the users of tenants: " +
			"the server of the current context has to be the gateway, such as https://GATEWAY/tenants/projects.",
		Example: "  kubectl vc project use shop\n  kubectl get pods",
		Args:    arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newProjectList(p), newProjectGet(p), newProjectRequest(p), newProjectDelete(p),
		newProjectUse(p), newProjectCurrent(p), newProjectUnset(p))
	return c
}

// projects connects to the API of projects, of the gateway of the context.
func (p *platform) projects() (client.Client, error) {
	config, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, exit.With(fmt.Errorf("read your kubeconfig: %w", err), "Select one with --kubeconfig and --context")
	}
	config = rest.CopyConfig(config)
	config.Host = project.Server(config.Host, "projects")
	c, err := client.New(config, client.Options{Scheme: scheme()})
	return c, explainProject(err, "connect to the gateway")
}

// ownProjects returns the context that is in use, and connects to the API of
// projects of its gateway.
func (p *platform) ownProjects() (*ownContext, client.Client, error) {
	own, err := p.ownContext()
	if err != nil {
		return nil, nil, err
	}
	c, err := p.projects()
	return own, c, err
}

// explainProject adds what was attempted and the next step to an error of the
// gateway, or of another server that the context has.
func explainProject(err error, attempted string) error {
	switch {
	case err == nil:
		return nil
	case isMissingProject(err):
		return exit.With(fmt.Errorf("%s: it does not exist, or you are not a member: %w", attempted, err),
			"List your projects: kubectl vc project list")
	case isOfProjects(err):
		return exit.With(fmt.Errorf("%s: %w", attempted, err), "List your projects: kubectl vc project list")
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return exit.With(fmt.Errorf("%s: %w", attempted, err),
			"Use a context whose server is the gateway, and whose user is one of the super cluster: kubectl config get-contexts")
	}
	return fmt.Errorf("%s: %w", attempted, err)
}

// isMissingProject reports whether a gateway says that there is no such project.
func isMissingProject(err error) bool {
	return apierrors.IsNotFound(err) && isOfProjects(err)
}

// isOfProjects reports whether a gateway says it about a project: its message
// says what to do.
func isOfProjects(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return false
	}
	kind := status.Status().Details.Kind
	return kind == projectsv1alpha1.Resource || kind == projectsv1alpha1.RequestsResource
}

// getProject reads a project.
func getProject(ctx context.Context, c client.Client, name string) (*projectsv1alpha1.Project, error) {
	found := &projectsv1alpha1.Project{}
	return found, explainProject(c.Get(ctx, client.ObjectKey{Name: name}, found), "get project "+name)
}

// printProjects prints projects in the format of the flags.
func (f *tableFlags) printProjects(p *platform, list *projectsv1alpha1.ProjectList, inUse string) error {
	return f.list(p, list, projectsv1alpha1.GroupVersion.WithKind("Project"), false, projectTable(list.Items, inUse, time.Now()))
}

// projectTable returns the table of projects. A star marks the default one.
func projectTable(items []projectsv1alpha1.Project, inUse string, now time.Time) *metav1.Table {
	const text = "string"
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Default", Type: text},
		{Name: nameColumn, Type: text, Format: nameFormat},
		{Name: phaseColumn, Type: text},
		{Name: versionColumn, Type: text},
		{Name: ageColumn, Type: text},
		{Name: "Key", Type: text, Priority: 1},
	}}
	for i := range items {
		each, mark := &items[i], ""
		if each.Name == inUse || each.Status.ClusterKey == inUse {
			mark = "*"
		}
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells: []any{
				mark, each.Name, or(each.Status.Phase), or(each.Status.Version), age(each.CreationTimestamp, now), or(each.Status.ClusterKey),
			},
			Object: runtime.RawExtension{Object: each},
		})
	}
	return table
}

// ownContext is the user's kubeconfig, and the context that is in use.
type ownContext struct {
	ownKubeconfig

	name string
}

// ownContext reads the user's kubeconfig.
func (p *platform) ownContext() (*ownContext, error) {
	kubeconfig, err := p.ownKubeconfig()
	if err != nil {
		return nil, err
	}
	own := &ownContext{ownKubeconfig: *kubeconfig, name: kubeconfig.config.CurrentContext}
	if *p.flags.Context != "" {
		own.name = *p.flags.Context
	}
	if own.config.Contexts[own.name] == nil {
		return nil, exit.With(fmt.Errorf("read your kubeconfig: it has no context %q", own.name), "Select one with --kubeconfig and --context")
	}
	return own, nil
}

// project returns the default project of the context; empty for none.
func (o *ownContext) project() string { return project.Current(o.config, o.name) }

// errNoProject is a context without a default project.
func (o *ownContext) errNoProject() error {
	return &exit.Error{
		Code: exit.NotFound, Err: fmt.Errorf("context %q: %w", o.name, project.ErrNone),
		Next: "Choose one: kubectl vc project use NAME",
	}
}

// completeProjects completes the names of projects, as many as a verb takes; 0
// means any number.
func (p *platform) completeProjects(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := &projectsv1alpha1.ProjectList{}
		reader, err := p.projects()
		if err != nil || reader.List(c.Context(), list) != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return unused(names, args), cobra.ShellCompDirectiveNoFileComp
	}
}

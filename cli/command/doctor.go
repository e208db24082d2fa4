package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"

	"github.com/virtualcluster/virtualcluster/cli/doctor"
	"github.com/virtualcluster/virtualcluster/cli/exit"
	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/cli/terminal"
	"github.com/virtualcluster/virtualcluster/internal/version"
)

// doctorOptions are the options of doctor.
type doctorOptions struct {
	*platform

	print   *genericclioptions.PrintFlags
	timeout time.Duration
	domain  string
	probe   doctor.Probe
}

func newDoctor(p *platform) *cobra.Command {
	o := &doctorOptions{platform: p, print: genericclioptions.NewPrintFlags("")}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check the super cluster before an installation, and the installation",
		Long: "Check the super cluster before an installation: its version and APIs, your permissions, its clock, volumes for the store, and, " +
			"with --probe, whether NetworkPolicies are enforced. If VirtualCluster is installed, check its components, roles, " +
			"Leases, certificates, stores and tenants, too.\n\n" +
			"A check is OK, Warning, Failed, or Skipped with the reason. The next steps follow the table. " +
			"The exit code is 8 if a check failed.\n\n" +
			"Nothing is changed, unless --probe is given: it creates pods in a namespace of their own, which is deleted at the end. " +
			"The pods run the image of kubectl-vc, which nodes have to be able to pull.",
		Example: "  # before and after an installation\n  kubectl vc doctor\n\n" +
			"  # with connections of pods\n  kubectl vc doctor --probe --probe-image registry.example.com/team/kubectl-vc:v0.1.0\n\n" +
			"  # whether names of tenants will resolve\n  kubectl vc doctor --endpoint-domain tenants.example.com",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              run(o),
	}
	o.print.AddFlags(c)
	c.Flags().Lookup("output").Usage = "Output format: table, which is the default, or one of json, yaml, name, jsonpath, jsonpath-file, " +
		"jsonpath-as-json, go-template, go-template-file, template, templatefile."
	c.Flags().DurationVar(&o.timeout, "timeout", 15*time.Second, "How long a check may take")
	c.Flags().StringVar(&o.domain, "endpoint-domain", "", "The domain below which tenants have names, to check whether these resolve")
	c.Flags().BoolVar(&o.probe.Enabled, "probe", false, "Create pods to check whether NetworkPolicies are enforced")
	c.Flags().StringVar(&o.probe.Image, "probe-image", "",
		"The image of kubectl-vc for the pods; default: kubectl-vc in the version of this command")
	c.Flags().DurationVar(&o.probe.Timeout, "probe-timeout", 2*time.Minute, "How long the check with pods may take")
	return c
}

// Complete chooses the image of the probe.
func (o *doctorOptions) Complete([]string) error {
	if o.probe.Image == "" {
		o.probe.Image = "kubectl-vc:" + version.String()
	}
	return nil
}

// Validate checks the flags.
func (o *doctorOptions) Validate() error {
	if o.timeout <= 0 || o.probe.Timeout <= 0 {
		return exit.Usagef("--timeout and --probe-timeout have to be more than 0")
	}
	if o.printsTable() {
		return nil
	}
	return validateFormat(o.print)
}

// printsTable reports whether the findings are printed for people.
func (o *doctorOptions) printsTable() bool {
	return *o.print.OutputFormat == "table" || *o.print.OutputFormat == "" && *o.print.TemplatePrinterFlags.TemplateArgument == ""
}

// Run checks, and prints the findings.
func (o *doctorOptions) Run(ctx context.Context) error {
	super, err := o.super(ctx)
	if err != nil {
		return err
	}
	findings := doctor.Run(ctx, doctor.Checks(o.domain, o.probe), super, o.timeout)
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.printsTable() {
		writeFindings(o.Out, findings)
	} else if err := printReport(o.print, o.platform, "Diagnosis", &diagnosis{super.Installation, findings}); err != nil {
		return err
	}
	if !doctor.Healthy(findings) {
		return &exit.Error{Code: exit.Unhealthy}
	}
	return nil
}

// diagnosis is what doctor prints with -o.
type diagnosis struct {
	// Installation is the namespace of the installation; empty if there is none.
	Installation string           `json:"installation"`
	Checks       []doctor.Finding `json:"checks"`
}

// super connects to the super cluster and finds the installation.
func (o *doctorOptions) super(ctx context.Context) (*doctor.Super, error) {
	config, c, err := o.everything()
	if err != nil {
		return nil, err
	}
	raw, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the super cluster: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if err := raw.RESTClient().Get().AbsPath("/version").Do(bounded).Error(); err != nil {
		return nil, exit.With(fmt.Errorf("connect to the super cluster: %w", err), "Check the connection and the context: kubectl version")
	}
	super := &doctor.Super{Config: config, Client: c, HTTP: raw.RESTClient()}
	super.Installation, err = installation.Find(bounded, c)
	if apierrors.IsForbidden(err) {
		super.Unfound, err = err.Error(), nil
	}
	return super, err
}

// writeFindings prints findings for people.
func writeFindings(out io.Writer, findings []doctor.Finding) {
	w := printers.GetNewTabWriter(out)
	printf(w, "STAGE\tCHECK\tVERDICT\tMESSAGE\n")
	for _, f := range findings {
		printf(w, "%s\t%s\t%s\t%s\n", f.Stage, f.Name, f.Verdict, terminal.Line(f.Message))
	}
	_ = w.Flush() // an error of out is that of the next write, too
	heading := "\nNext steps:"
	for _, f := range findings {
		if f.Next == "" {
			continue
		}
		if heading != "" {
			sayf(out, "%s", heading)
			heading = ""
		}
		sayf(out, "  %s: %s", f.Name, terminal.Line(f.Next))
	}
}

// Package doctor checks a super cluster before and after an installation. A
// check is a value, and a file has the checks of one subject: what they read,
// and the pure function that reaches the verdict.
//
// Checks change nothing, except for that of NetworkPolicies, which has to be
// requested.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

// Verdict is what a check found.
type Verdict string

// The verdicts.
const (
	// OK: nothing is wrong.
	OK Verdict = "OK"
	// Warning: it works, and something should be changed.
	Warning Verdict = "Warning"
	// Failed: it does not work.
	Failed Verdict = "Failed"
	// Skipped: not checked, for the reason in the message.
	Skipped Verdict = "Skipped"
)

// Stage is when a check applies.
type Stage string

// The stages.
const (
	// Cluster: the super cluster, before an installation and after.
	Cluster Stage = "Cluster"
	// Installed: the installation.
	Installed Stage = "Installation"
)

// Result is the outcome of a check.
type Result struct {
	Verdict Verdict `json:"verdict"`
	// Message says what was found.
	Message string `json:"message"`
	// Next says what to do, in the imperative; empty if there is nothing to do.
	Next string `json:"next,omitempty"`
}

// Check is a check of a super cluster.
type Check struct {
	Name  string
	Stage Stage
	Run   func(context.Context, *Super) Result
	// Timeout bounds Run; 0 for the timeout of all checks.
	Timeout time.Duration
}

// Finding is a check with its outcome.
type Finding struct {
	Name  string `json:"name"`
	Stage Stage  `json:"stage"`
	Result
}

// Super is the super cluster that is checked.
type Super struct {
	// Config is the configuration of the user, and Client its client with the
	// kinds of Kubernetes, of VirtualCluster, and CustomResourceDefinitions.
	Config *rest.Config
	Client client.Client
	// HTTP sends requests that the client has no methods for.
	HTTP rest.Interface
	// Installation is the namespace of the installation; empty if there is none,
	// or none was found for the reason in Unfound.
	Installation string
	Unfound      string
}

// workers is how many checks run at a time.
const workers = 8

// Run runs checks, each for a limited time, and returns what they find in their
// order. Those of an installation run if there is one.
func Run(ctx context.Context, checks []Check, s *Super, timeout time.Duration) []Finding {
	if s.Installation == "" {
		absent := skipped("%s", cmp.Or(s.Unfound, "VirtualCluster is not installed"))
		checks = slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.Stage == Installed })
		checks = append(checks, Check{
			Name: "installed", Stage: Installed, Run: func(context.Context, *Super) Result { return absent },
		})
	}
	findings := make([]Finding, len(checks))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, c := range checks {
		group.Go(func() error {
			bounded, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, timeout))
			defer cancel()
			findings[i] = Finding{Name: c.Name, Stage: c.Stage, Result: c.Run(bounded, s)}
			return nil
		})
	}
	_ = group.Wait() // checks return no errors
	return findings
}

// Healthy reports whether no check failed.
func Healthy(findings []Finding) bool {
	for _, f := range findings {
		if f.Verdict == Failed {
			return false
		}
	}
	return true
}

// Checks returns all checks. Those of the endpoint domain and of NetworkPolicies
// have options.
func Checks(domain string, probe Probe) []Check {
	checks := []Check{
		{Name: "kubernetes-version", Stage: Cluster, Run: kubernetesVersion},
		{Name: "clock", Stage: Cluster, Run: clock},
		{Name: "permissions", Stage: Cluster, Run: permissions},
		{Name: "apis", Stage: Cluster, Run: apis},
		{Name: "storage", Stage: Cluster, Run: storage},
		{Name: "endpoint-domain", Stage: Cluster, Run: endpointDomain(domain)},
		{Name: "network-policies", Stage: Cluster, Run: probe.check, Timeout: probe.Timeout},
		{Name: "crds", Stage: Installed, Run: crds},
	}
	for _, w := range workloads() {
		checks = append(checks, Check{Name: w.name, Stage: Installed, Run: w.check})
	}
	return append(checks,
		Check{Name: "versions", Stage: Installed, Run: versions},
		Check{Name: "roles", Stage: Installed, Run: roles},
		Check{Name: "leases", Stage: Installed, Run: leases},
		Check{Name: "webhook", Stage: Installed, Run: managerWebhook.check},
		Check{Name: "limits-webhook", Stage: Installed, Run: limitsWebhook.check},
		Check{Name: "admission-webhooks", Stage: Installed, Run: admissionWebhooks},
		Check{Name: "stores", Stage: Installed, Run: stores},
		Check{Name: "tenants", Stage: Installed, Run: tenants},
		Check{Name: "leftovers", Stage: Installed, Run: leftovers},
		Check{Name: "certificates", Stage: Installed, Run: certificates},
		Check{Name: "endpoints", Stage: Installed, Run: endpoints},
		Check{Name: "service-addresses", Stage: Installed, Run: serviceAddresses},
	)
}

func ok(message string, args ...any) Result {
	return Result{Verdict: OK, Message: fmt.Sprintf(message, args...)}
}

func skipped(message string, args ...any) Result {
	return Result{Verdict: Skipped, Message: fmt.Sprintf(message, args...)}
}

func warning(next, message string, args ...any) Result {
	return Result{Verdict: Warning, Next: next, Message: fmt.Sprintf(message, args...)}
}

func failed(next, message string, args ...any) Result {
	return Result{Verdict: Failed, Next: next, Message: fmt.Sprintf(message, args...)}
}

// unread is the result of a check that could not read what it checks.
func unread(err error) Result {
	message := terminal.Line(err.Error())
	switch {
	case apierrors.IsForbidden(err):
		return Result{Skipped, message, "Run doctor with the permissions of cluster-admin"}
	case meta.IsNoMatchError(err):
		return Result{Skipped, message, "Install the CustomResourceDefinitions of the chart"}
	}
	return failed("Check the connection to the super cluster: kubectl get --raw /readyz", "%s", message)
}

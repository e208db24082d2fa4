package command

import (
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/terminal"
)

const (
	// mostFields are the fields that are printed without --all-fields.
	mostFields = 40
	// widestValue is the longest value that is printed.
	widestValue = 60
)

// write writes the comparison for people.
func (c *comparison) write(out io.Writer, found sides, all bool, now time.Time) error {
	line := c.Outcome
	if c.Message != "" {
		line += ": " + c.Message
	}
	sayf(out, "%s", terminal.Line(line))
	w := printers.GetNewTabWriter(out)
	printf(w, "\tTENANT\tSUPER CLUSTER\n")
	printf(w, "%s\t%s\t%s\n", terminal.Line(c.Kind), terminal.Line(c.Tenant), terminal.Line(c.Super))
	for _, row := range []struct {
		name  string
		value func(*unstructured.Unstructured) string
	}{
		{"exists", func(obj *unstructured.Unstructured) string { return age(obj.GetCreationTimestamp(), now) }},
		{"uid", func(obj *unstructured.Unstructured) string { return string(obj.GetUID()) }},
		{"deleted", deleted},
		{"phase", phase},
	} {
		here, there := side(found.tenant, row.value), side(found.super, row.value)
		if here != "" || there != "" {
			printf(w, "%s\t%s\t%s\n", row.name, terminal.Line(or(here)), terminal.Line(or(there)))
		}
	}
	for i, f := range c.Fields {
		if i == mostFields && !all {
			break
		}
		printf(w, "%s\t%s\t%s\n", terminal.Line(f.Path), short(f.Tenant), short(f.Super))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if left := len(c.Fields) - mostFields; left > 0 && !all {
		sayf(out, "%d more fields differ; --all-fields prints them", left)
	}
	writeEvents(out, c.Events, now)
	return nil
}

// side returns a value of an object that may not exist.
func side(obj *unstructured.Unstructured, value func(*unstructured.Unstructured) string) string {
	if obj == nil {
		return ""
	}
	return value(obj)
}

func deleted(obj *unstructured.Unstructured) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return obj.GetDeletionTimestamp().UTC().Format(time.RFC3339)
}

func phase(obj *unstructured.Unstructured) string {
	text, _, err := unstructured.NestedString(obj.Object, "status", "phase")
	if err != nil {
		return ""
	}
	return text
}

// short returns a value in at most widestValue characters.
func short(value string) string {
	runes := []rune(or(value))
	if len(runes) > widestValue {
		runes = append(runes[:widestValue-1], '…')
	}
	return terminal.Line(string(runes))
}

// write writes the report for people.
func (r *pendingReport) write(out io.Writer, tenant client.ObjectKey, now time.Time) {
	sayf(out, "%s\n%s", r.Syncing, r.Synced)
	if len(r.Pending) == 0 {
		sayf(out, "No object of the tenant has a current report that it is not synced.")
		return
	}
	w := printers.GetNewTabWriter(out)
	printf(w, "OBJECT\tSINCE\tOUTCOME\tMESSAGE\n")
	for _, p := range r.Pending {
		printf(w, "%s\t%s\t%s\t%s\n", terminal.Line(p.Object), age(p.Since, now), p.Outcome, terminal.Line(p.Message))
	}
	_ = w.Flush() // an error of out is that of the next write, too
	if r.More {
		sayf(out, "There are more; these are the newest %d.", mostReported)
	}
	sayf(out, "Compare one with its copy: kubectl vc sync %s KIND/NAME -n %s --tenant-namespace NAMESPACE", tenant.Name, tenant.Namespace)
}

// Chart writes the templates of the Helm chart that are manifests of config, so
// that both install the same, and the reference of the chart's values.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// run writes the files of the project in the folder of the argument.
func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("expected the folder of the project, got %q", args)
	}
	config, templates := filepath.Join(args[0], "config"), filepath.Join(args[0], "charts/virtualcluster/templates")
	for _, s := range sets {
		if err := s.write(os.DirFS(config), templates); err != nil {
			return err
		}
	}
	return writeReference(args[0])
}

// writeReference writes the reference of the values.
func writeReference(project string) error {
	values, err := fs.ReadFile(os.DirFS(project), "charts/virtualcluster/values.yaml")
	if err != nil {
		return err
	}
	reference, err := describe(string(values))
	if err != nil {
		return fmt.Errorf("describe the values of the chart: %w", err)
	}
	return write(filepath.Join(project, "docs/admins/chart-values.md"), reference)
}

// write writes a file of the project.
func write(file, content string) error {
	return os.WriteFile(file, []byte(content), 0o644) //nolint:gosec // it is a source file
}

// set is a folder of manifests that become templates of a component.
type set struct {
	// files is a pattern below config.
	files string
	// component is what the objects belong to: a folder of the templates, and
	// a label.
	component string
	// when is the condition on the values under which they are installed; empty
	// for always.
	when string
	// replace has pairs of what a manifest says and what its template says.
	replace []string
}

// Components, and conditions on values.
const (
	manager, syncer, agent, dns = "vc-manager", "vc-syncer", "vn-agent", "vc-dns"
	host, store, gateway        = "vc-host", "vc-store", "vc-gateway"
	pool, converted             = "service-addresses", "converted-tenants"

	ifWebhook, ifAgent = ".Values.webhook.enabled", ".Values.vnAgent.enabled"
	ifHost, ifStore    = ".Values.vcHost.enabled", "and .Values.vcHost.enabled .Values.vcStore.enabled"
	ifDNS, ifPool      = ".Values.vcDNS.enabled", ".Values.serviceAddresses.pool"
	ifGateway          = ".Values.vcGateway.enabled"
	ifConverted        = ".Values.convertedTenants.enabled"
	ifLimits           = "and .Values.convertedTenants.enabled .Values.vcSyncer.quotaValidation"
)

// metadata begins the metadata of an object, and kept that of one which outlives
// the release.
const (
	metadata = "\nmetadata:\n"
	kept     = metadata + "  annotations:\n    helm.sh/resource-policy: keep\n"
)

// annotations adds those that cert-manager reads.
const annotations = `
  {{- with include "virtualcluster.webhookAnnotations" . }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
webhooks:
`

// sets are all manifests that the chart shares with config.
var sets = []set{
	{"crd/tenancy.*.yaml", "crds", ".Values.crds.install", []string{
		"\n  annotations:\n", "\n  annotations:\n    helm.sh/resource-policy: keep\n",
	}},
	{"rbac/vc-manager/*role*.yaml", manager, "", nil},
	{"rbac/vc-manager/service_account.yaml", manager, "", nil},
	{"rbac/vc-syncer/role*.yaml", syncer, "", nil},
	// Kept: when it is deleted together with the roles that it aggregates, the
	// controller that aggregates them may create it again, without an owner.
	{"rbac/vc-syncer/cluster_role.yaml", syncer, "", []string{
		metadata, kept,
	}},
	{"rbac/vc-syncer/service_account.yaml", syncer, "", nil},
	{"rbac/vn-agent/*role*.yaml", agent, ifAgent, nil},
	{"rbac/vn-agent/service_account.yaml", agent, ifAgent, nil},
	{"rbac/vc-dns/*role*.yaml", dns, ifDNS, nil},
	{"rbac/vc-dns/service_account.yaml", dns, ifDNS, nil},
	{"rbac/vc-host/namespace.yaml", host, ifHost, nil},
	{"rbac/vc-host/*role*.yaml", host, ifHost, nil},
	{"rbac/vc-host/service_account.yaml", host, ifHost, nil},
	{"rbac/vc-gateway/*role*.yaml", gateway, ifGateway, nil},
	{"rbac/vc-gateway/service_account.yaml", gateway, ifGateway, nil},
	{"rbac/vc-store/service_account.yaml", store, ifStore, nil},
	{"webhook/validating_webhook.yaml", manager, ifWebhook, []string{"\nwebhooks:\n", annotations}},
	{"webhook/service.yaml", manager, ifWebhook, []string{"targetPort: 9443", "targetPort: webhook"}},
	// Kept: Services of tenants use its addresses, so that it could not be deleted
	// but would give out no more.
	{"servicecidr/service_cidr.yaml", pool, ifPool, []string{
		"- 10.104.0.0/13", "- {{ .Values.serviceAddresses.pool | quote }}\n" +
			"  {{- with .Values.serviceAddresses.secondaryPool }}\n  - {{ . | quote }}\n  {{- end }}",
		metadata, kept,
	}},
	{"servicecidr/policy.yaml", pool, ifPool, nil},
	{"servicecidr/binding.yaml", pool, ifPool, nil},
	// Kept: with them go the roles and classes of tenants.
	{"converted/*_crd.yaml", converted, ifConverted, []string{
		metadata, kept,
	}},
	{"converted/*_role.yaml", converted, ifConverted, nil},
	{"converted/*_policy.yaml", converted, ifConverted, nil},
	{"converted/webhook/role.yaml", converted, ifLimits, nil},
	{"converted/webhook/service.yaml", converted, ifLimits, []string{"targetPort: 9443", "targetPort: webhook"}},
	{"converted/webhook/validating_webhook.yaml", converted, ifLimits, nil},
	{"dns/config.yaml", dns, ifDNS, nil},
	{"dns/service.yaml", dns, ifDNS, nil},
}

const header = "{{- /* Written by make generate, of config/%s. */ -}}\n"

var errTemplate = errors.New("the manifest has braces that a template would interpret")

// write writes the templates of a set.
func (s set) write(config fs.FS, templates string) error {
	files, err := fs.Glob(config, s.files)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("find config/%s: there is no such file", s.files)
	}
	for _, file := range files {
		data, err := fs.ReadFile(config, file)
		if err != nil {
			return err
		}
		template, err := s.template(string(data))
		if err != nil {
			return fmt.Errorf("make a template of %s: %w", file, err)
		}
		out := filepath.Join(templates, s.component, path.Base(file))
		if err := write(out, fmt.Sprintf(header, file)+template); err != nil {
			return err
		}
	}
	return nil
}

// template returns the template of a manifest: in the namespace of the release,
// and with the labels of the chart.
func (s set) template(manifest string) (string, error) {
	if strings.Contains(manifest, "{{") {
		return "", errTemplate
	}
	for i := 0; i < len(s.replace); i += 2 {
		if !strings.Contains(manifest, s.replace[i]) {
			return "", fmt.Errorf("%q is not in it", s.replace[i])
		}
		manifest = strings.ReplaceAll(manifest, s.replace[i], s.replace[i+1])
	}
	manifest = strings.ReplaceAll(manifest, "namespace: vc-system", "namespace: {{ .Release.Namespace }}")
	manifest = strings.ReplaceAll(manifest, "system:serviceaccount:vc-system:", "system:serviceaccount:{{ .Release.Namespace }}:")
	labels := fmt.Sprintf("    {{- include \"virtualcluster.labels\" (list . %q) | nindent 4 }}\n", s.component)
	manifest = addLabels(manifest, labels)
	if s.when == "" {
		return manifest, nil
	}
	return fmt.Sprintf("{{- if %s }}\n%s{{- end }}\n", s.when, manifest), nil
}

// addLabels adds labels to the metadata of each object of a manifest.
func addLabels(manifest, labels string) string {
	const own = "\n  labels:\n"
	objects := strings.Split(manifest, metadata)
	for i, object := range objects[1:] {
		body, rest := object, ""
		// The metadata ends with the next line that is not indented.
		for offset := 0; offset < len(object); {
			end := strings.IndexByte(object[offset:], '\n') + offset + 1
			if end == offset || object[offset] != ' ' {
				body, rest = object[:offset], object[offset:]
				break
			}
			offset = end
		}
		if before, after, found := strings.Cut("\n"+body, own); found {
			body = strings.TrimPrefix(before+own+labels+after, "\n")
		} else {
			body = "  labels:\n" + labels + body
		}
		objects[i+1] = body + rest
	}
	return strings.Join(objects, metadata)
}

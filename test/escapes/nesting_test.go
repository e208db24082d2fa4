package escapes

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protowire"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

var _ = Describe("Objects that are nested deeply", func() {
	inBothChains(attackWithNesting)
})

// attackWithNesting declares the attacks on control planes of an isolation. Each
// is one request, after which another tenant of the process has to be served.
func attackWithNesting(isolation tenancyv1alpha1.Isolation, where string) {
	const (
		ns = "nesting"

		dataField, labelsField, annotationsField = 2, 11, 12
	)
	metadata := []protowire.Number{1}
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) { mallory = tenant(ctx, kit.WithIsolation(isolation)) })
	shouldServeOthers(isolation, ns)
	send := func(ctx context.Context, method, path, mediaType string, body []byte) (code int, text string) {
		GinkgoHelper()
		return sendSoon(ctx, mallory, method, path, mediaType, bytes.NewReader(body))
	}
	// stored is the path of a definition without anything deep.
	stored := func(ctx context.Context) string {
		GinkgoHelper()
		code, text := send(ctx, http.MethodPost, definitions, "application/json", []byte(nestedDefinition(`{"type":"object","properties":{"a":{"type":"object"}}}`, "")))
		Expect(code).To(Or(Equal(http.StatusCreated), Equal(http.StatusConflict)), text)
		return definitions + "/widgets.nested.example.com"
	}

	attack("a schema in protobuf, in 100,000 others"+where, "review: the stack overflows, which ends the process of all control planes", func(ctx SpecContext) {
		code, text := send(ctx, http.MethodPost, definitions, "application/vnd.kubernetes.protobuf", nestingtest.Definition(nestingtest.Nots(100_000)))
		Expect(code).To(Equal(http.StatusRequestEntityTooLarge), text)
	})

	attack("a schema in protobuf of 300 bytes, of which each level is decoded twice"+where,
		"idea: the decoder lets the value of a map's entry reach beyond it", func(ctx SpecContext) {
			code, text := send(ctx, http.MethodPost, definitions, "application/vnd.kubernetes.protobuf", nestingtest.Definition(nestingtest.Doubling(60)))
			Expect(code).To(Equal(http.StatusBadRequest), text)
		})

	for _, a := range []struct {
		text, method, path, apiVersion, kind string
		in                                   []protowire.Number
		field                                protowire.Number
	}{
		{"the data of a ConfigMap", http.MethodPost, "/api/v1/namespaces/default/configmaps", "v1", "ConfigMap", nil, dataField},
		{"the data of a ConfigMap that does not say so", http.MethodPost, "/api/v1/namespaces/default/configmaps", "", "", nil, dataField},
		{"the labels of a CronJob", http.MethodPost, "/apis/batch/v1/namespaces/default/cronjobs", "batch/v1", "CronJob", metadata, labelsField},
		{"the annotations of a definition", http.MethodPost, definitions, "apiextensions.k8s.io/v1", "CustomResourceDefinition", metadata, annotationsField},
		{"the labels of an APIService", http.MethodPost, "/apis/apiregistration.k8s.io/v1/apiservices", "apiregistration.k8s.io/v1", "APIService", metadata, labelsField},
		{"the labels of metadata in the place of options", http.MethodDelete, "/api/v1/namespaces/default/configmaps/none", "meta.k8s.io/v1", "PartialObjectMetadata", metadata, labelsField},
	} {
		attack(a.text+" in protobuf, of which each value has the rest of the object in it, too"+where,
			"idea: 3 MB take as many gigabytes as there are thousands of entries", func(ctx SpecContext) {
				const (
					entries = 300 // with as many as fit, the process would not be there to answer
					padding = 2_900_000
				)
				body := nestingtest.Object(a.apiVersion, a.kind, nestingtest.In(nestingtest.Overlapping(a.field, entries, padding), a.in...))
				code, text := send(ctx, a.method, a.path, "application/vnd.kubernetes.protobuf", body)
				Expect(code).To(Equal(http.StatusBadRequest), text)
				Expect(text).To(ContainSubstring("as Kubernetes encodes it"))
			})
	}

	attack("a quantity in protobuf of a hundred million digits, in ten characters"+where,
		"idea: the decoder computes a power of ten, and nothing ends it", func(ctx SpecContext) {
			const specField, hardField, keyField, valueField, textField = 2, 1, 1, 2, 1
			for _, quantity := range []string{"1e-99999999", "12345678901234567890E9999999", strings.Repeat("9", 2_900_000)} {
				entry := append(nestingtest.In([]byte("cpu"), keyField), nestingtest.In([]byte(quantity), valueField, textField)...)
				body := nestingtest.Object("v1", "ResourceQuota", nestingtest.In(entry, specField, hardField))
				code, text := send(ctx, http.MethodPost, "/api/v1/namespaces/default/resourcequotas", "application/vnd.kubernetes.protobuf", body)
				Expect(code).To(Equal(http.StatusBadRequest), text)
				Expect(text).To(ContainSubstring("fewer digits"))
			}
		})

	attack("a schema in 9,900 others, in all formats of text"+where, "idea: some are decoded once for each level above them", func(ctx SpecContext) {
		path := stored(ctx)
		deep := strings.Repeat(`{"additionalProperties":`, 9_900) + "{}" + strings.Repeat("}", 9_900)
		object := []byte(nestedDefinition(deep, ""))
		for _, how := range [][3]string{
			{http.MethodPost, definitions, "application/json"},
			{http.MethodPost, definitions, "application/yaml"},
			{http.MethodPut, path, "application/json"},
			{http.MethodPatch, path, "application/merge-patch+json"},
			{http.MethodPatch, path + "?fieldManager=m", "application/apply-patch+yaml"},
			{http.MethodPatch, path + "?fieldManager=m", "application/apply-patch+yaml;;"},
		} {
			code, text := send(ctx, how[0], how[1], how[2], object)
			Expect(code).To(Equal(http.StatusRequestEntityTooLarge), "%v: %s", how, text)
		}
		dashes := []byte(strings.Repeat("- ", 9_000) + "a")
		code, text := send(ctx, http.MethodPost, definitions, "application/yaml", dashes)
		Expect(code).To(Equal(http.StatusRequestEntityTooLarge), text)
	})

	attack("a schema that a JSON patch nests, whose own text is flat"+where, "idea: moves put objects into each other", func(ctx SpecContext) {
		path := stored(ctx)
		const (
			root = "/spec/versions/0/schema/openAPIV3Schema/properties/a"
			by   = 5 // levels
		)
		patch := func(times int) []byte { return []byte("[" + movesInto(root, "additionalProperties", by, times) + "]") }
		code, text := send(ctx, http.MethodPatch, path, "application/json-patch+json", patch(2_000))
		Expect(code).To(Equal(http.StatusRequestEntityTooLarge), text)
		code, text = send(ctx, http.MethodPatch, path, "application/json-patch+json", patch(100/by))
		Expect(code).To(Equal(http.StatusForbidden), text)
		Expect(text).To(ContainSubstring("nested deeper"))
	})

	attack("a printer column whose path is a megabyte of spaces"+where,
		"idea: the parser of paths calls itself for each space, at the first read of a custom resource and after each restart", func(ctx SpecContext) {
			column := `"additionalPrinterColumns":[{"name":"x","type":"string","jsonPath":".a` + strings.Repeat(" ", 1_450_000) + `"}],`
			code, text := send(ctx, http.MethodPost, definitions, "application/json", []byte(nestedDefinition(`{"type":"object"}`, column)))
			Expect(code).To(Equal(http.StatusForbidden), text)
			Expect(text).To(ContainSubstring("use a shorter one"))
			_, _ = send(ctx, http.MethodGet, "/apis/nested.example.com/v1/widgets", "", nil)
		})
}

// nestedDefinition is a definition of widgets with a schema and columns.
func nestedDefinition(schema, columns string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.nested.example.com"},` +
		`"spec":{"group":"nested.example.com","scope":"Cluster","names":{"plural":"widgets","kind":"Widget"},` +
		`"versions":[{"name":"v1","served":true,"storage":true,` + columns + `"schema":{"openAPIV3Schema":` + schema + `}}]}}`
}

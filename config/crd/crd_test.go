package crd

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// load converts a CRD of this package to the form that an apiserver works with,
// and defaults it as an apiserver does.
func load(t *testing.T, name string) *apiextensions.CustomResourceDefinition {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(crds, func(c *apiextensionsv1.CustomResourceDefinition) bool {
		return c.Spec.Names.Plural == name
	})
	if i < 0 {
		t.Fatalf("no CRD of %s", name)
	}
	scheme.Default(crds[i])
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(crds[i], internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}

// checker validates custom resources as an apiserver does: pruning, defaults,
// schema, list types, CEL.
type checker struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
}

func newChecker(t *testing.T, name string) *checker {
	t.Helper()
	crd := load(t, name)
	props := crd.Spec.Validation
	if props == nil {
		props = crd.Spec.Versions[0].Schema
	}
	structural, err := schema.NewStructural(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(props.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return &checker{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// read parses a manifest, prunes it and sets the defaults. Integers are
// integers, as an apiserver reads them.
func (c *checker) read(t *testing.T, manifest string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, c.structural, true)
	defaulting.Default(object, c.structural)
	return object
}

// validate says what an apiserver would say; old is nil for a creation.
func (c *checker) validate(object, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateCustomResource(nil, object, c.validator)
	} else {
		errs = validation.ValidateCustomResourceUpdate(nil, object, old, c.validator)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, object)...)
	var oldObject any
	if old != nil {
		oldObject = old
	}
	celErrs, _ := c.cel.Validate(context.Background(), nil, c.structural, object, oldObject, celconfig.RuntimeCELCostBudget)
	return append(errs, celErrs...)
}

func TestDefinitionsAreValid(t *testing.T) {
	for _, name := range []string{"virtualclusters", "clusterversions", "controlplanestores", "hostedcontrolplanes"} {
		t.Run(name, func(t *testing.T) {
			crd := load(t, name)
			// Filled by the apiserver when it stores the definition.
			crd.Status.StoredVersions = []string{"v1alpha1"}
			if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), crd); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}

func virtualCluster(name, spec string) string {
	return "apiVersion: tenancy.x-k8s.io/v1alpha1\nkind: VirtualCluster\nmetadata: {name: " + name + ", namespace: tenants}\nspec: " + spec
}

func TestCreate(t *testing.T) {
	cases := map[string]struct {
		name, spec string
		want       string // in the error; empty if there is none
	}{
		"Empty":             {"red", "{}", ""},
		"ShortestName":      {"r", "{}", ""},
		"LongestName":       {strings.Repeat("r", 40), "{}", ""},
		"NameTooLong":       {strings.Repeat("r", 41), "{}", "at most 40 characters"},
		"NameWithDots":      {"red.team", "{}", "must be a DNS label"},
		"Full":              {"red", full, ""},
		"Ancestor":          {"red", ancestor, ""},
		"IPv4":              {"red", `{serviceCidr: 10.96.0.0/16}`, ""},
		"IPv6":              {"red", `{serviceCidr: "fd00:10::/112"}`, ""},
		"Largest":           {"red", `{serviceCidr: 10.96.0.0/12}`, ""},
		"Smallest":          {"red", `{serviceCidr: 10.96.0.0/29}`, ""},
		"TooLarge":          {"red", `{serviceCidr: 10.0.0.0/8}`, "8 to 1048576 addresses"},
		"TooSmall":          {"red", `{serviceCidr: 10.96.0.0/30}`, "8 to 1048576 addresses"},
		"IPv6TooLarge":      {"red", `{serviceCidr: "fd00:10::/64"}`, "8 to 1048576 addresses"},
		"HostBits":          {"red", `{serviceCidr: 10.96.0.1/16}`, "no host bits set"},
		"NoCIDR":            {"red", `{serviceCidr: 10.96.0.0}`, "CIDR notation"},
		"TwoCIDRs":          {"red", `{serviceCidr: "10.96.0.0/16,fd00::/112"}`, "CIDR notation"},
		"EmptyCIDR":         {"red", `{serviceCidr: ""}`, "CIDR notation"},
		"BothFamilies":      {"red", `{serviceCidr: 10.96.0.0/16, secondaryServiceCidr: "fd00:10::/112"}`, ""},
		"SixFirst":          {"red", `{serviceCidr: "fd00:10::/112", secondaryServiceCidr: 10.96.0.0/16}`, ""},
		"OneFamilyTwice":    {"red", `{serviceCidr: 10.96.0.0/16, secondaryServiceCidr: 10.97.0.0/16}`, "different IP families"},
		"SecondAlone":       {"red", `{secondaryServiceCidr: "fd00:10::/112"}`, "secondaryServiceCidr needs serviceCidr"},
		"SecondTooLarge":    {"red", `{serviceCidr: 10.96.0.0/16, secondaryServiceCidr: "fd00:10::/64"}`, "8 to 1048576 addresses"},
		"SecondHostBits":    {"red", `{serviceCidr: 10.96.0.0/16, secondaryServiceCidr: "fd00:10::1/112"}`, "no host bits set"},
		"BadFirst":          {"red", `{serviceCidr: x, secondaryServiceCidr: "fd00:10::/112"}`, "CIDR notation"},
		"Domain":            {"red", `{clusterDomain: red.example.com}`, ""},
		"DomainUpperCase":   {"red", `{clusterDomain: Red.example}`, "clusterDomain"},
		"DomainEndsWithDot": {"red", `{clusterDomain: cluster.local.}`, "clusterDomain"},
		"DomainLongLabel":   {"red", `{clusterDomain: ` + strings.Repeat("a", 64) + `.local}`, "at most 63"},
		"Hosted":            {"red", `{provisioner: Hosted}`, ""},
		"OwnWay":            {"red", `{provisioner: Magic2}`, ""},
		"LongestWay":        {"red", `{provisioner: M` + strings.Repeat("a", 62) + `}`, ""},
		"LongWay":           {"red", `{provisioner: M` + strings.Repeat("a", 63) + `}`, "may not be more than 63"},
		"LowerCaseWay":      {"red", `{provisioner: hosted}`, "spec.provisioner"},
		"WayOfDomain":       {"red", `{provisioner: example.com/Magic}`, "spec.provisioner"},
		"EmptyWay":          {"red", `{provisioner: ""}`, "spec.provisioner"},
		"Version":           {"red", `{kubernetesVersion: v1.36.3}`, ""},
		"MinorVersion":      {"red", `{kubernetesVersion: "1.36"}`, ""},
		"VersionWord":       {"red", `{kubernetesVersion: latest}`, "kubernetesVersion"},
		"VersionMajor":      {"red", `{kubernetesVersion: "1"}`, "kubernetesVersion"},
		"WeightZero":        {"red", `{weight: 0}`, "weight"},
		"WeightHigh":        {"red", `{weight: 1001}`, "weight"},
		"PKIDaysZero":       {"red", `{pkiExpireDays: 0}`, "pkiExpireDays"},
		"PrefixTwice":       {"red", `{opaqueMetaPrefixes: [a/, a/]}`, "Duplicate"},
		"PrefixEmpty":       {"red", `{opaqueMetaPrefixes: [""]}`, "opaqueMetaPrefixes"},
		"External":          {"red", `{provisioner: External, external: {kubeconfigSecretName: red}}`, ""},
		"ExternalWithout":   {"red", `{provisioner: External}`, "external must be set"},
		"ExternalAlone":     {"red", `{external: {kubeconfigSecretName: red}}`, "external must be set"},
		"ExternalOfHosted":  {"red", `{provisioner: Hosted, external: {kubeconfigSecretName: red}}`, "external must be set"},
		"ExternalNameless":  {"red", `{provisioner: External, external: {}}`, "kubeconfigSecretName"},
		"ExternalMembers":   {"red", `{provisioner: External, external: {kubeconfigSecretName: red}, members: [{kind: User, name: jane}]}`, "members are for provisioner Hosted"},
		"ExternalNoMembers": {"red", `{provisioner: External, external: {kubeconfigSecretName: red}, members: []}`, ""},
		"ExternalBadName":   {"red", `{provisioner: External, external: {kubeconfigSecretName: ../red}}`, "kubeconfigSecretName"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster(tc.name, tc.spec)), nil), tc.want)
		})
	}
}

func TestUpdate(t *testing.T) {
	cases := map[string]struct{ from, to, want string }{
		"Nothing":   {full, full, ""},
		"Weight":    {`{weight: 2}`, `{weight: 3}`, ""},
		"VersionUp": {`{kubernetesVersion: "1.35"}`, `{kubernetesVersion: "1.36"}`, ""},
		"CIDR":      {`{serviceCidr: 10.96.0.0/16}`, `{serviceCidr: 10.97.0.0/16}`, "serviceCidr is immutable"},
		"SecondCIDR": {
			`{serviceCidr: 10.96.0.0/16}`, `{serviceCidr: 10.96.0.0/16, secondaryServiceCidr: "fd00:10::/112"}`, "cannot be added or removed",
		},
		"CIDRAdded":         {`{}`, `{serviceCidr: 10.97.0.0/16}`, "serviceCidr cannot be added or removed"},
		"CIDRAddedToNoSpec": {``, `{serviceCidr: 10.97.0.0/16}`, "serviceCidr cannot be added or removed"},
		"CIDRRemoved":       {`{serviceCidr: 10.96.0.0/16}`, `{}`, "serviceCidr cannot be added or removed"},
		"SpecRemoved":       {`{serviceCidr: 10.96.0.0/16}`, ``, "serviceCidr cannot be added or removed"},
		"Domain":            {`{clusterDomain: a}`, `{clusterDomain: b}`, "clusterDomain is immutable"},
		"DomainAdded":       {`{}`, `{clusterDomain: b}`, "clusterDomain cannot be added or removed"},
		"Way":               {`{provisioner: Hosted}`, `{provisioner: Native}`, "provisioner is immutable"},
		"OwnWay":            {`{provisioner: Magic}`, `{provisioner: Hosted}`, "provisioner is immutable"},
		"WayRemoved":        {`{provisioner: Hosted}`, `{}`, "provisioner cannot be added or removed"},
		"SecretOfExternal": {
			`{provisioner: External, external: {kubeconfigSecretName: a}}`,
			`{provisioner: External, external: {kubeconfigSecretName: b}}`, "",
		},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to := check.read(t, virtualCluster("red", tc.from)), check.read(t, virtualCluster("red", tc.to))
			expect(t, check.validate(to, from), tc.want)
		})
	}
}

// TestClusterVersionKeepsItsManifests proves that nothing of a part is pruned,
// fields that are not known here included.
func TestClusterVersionKeepsItsManifests(t *testing.T) {
	check := newChecker(t, "clusterversions")
	object := check.read(t, `
metadata: {name: v1}
spec:
  etcd:
    metadata: {name: etcd, labels: {a: b}}
    statefulset: {apiVersion: apps/v1, kind: StatefulSet, metadata: {name: etcd}, spec: {replicas: 1, ofTheFuture: true}}
    service: {metadata: {name: etcd}, spec: {clusterIP: None, ofTheFuture: true}}
`)
	expect(t, check.validate(object, nil), "")
	data, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"labels:", "a: b", "replicas: 1", "clusterIP: None"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q was pruned from\n%s", want, data)
		}
	}
	if strings.Count(string(data), "ofTheFuture: true") != 2 {
		t.Errorf("fields of later versions were pruned from\n%s", data)
	}
}

func expect(t *testing.T, errs field.ErrorList, want string) {
	t.Helper()
	got := ""
	if len(errs) > 0 {
		got = errs.ToAggregate().Error()
	}
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("got error %q, want %q", got, want)
	}
}

const full = `
  clusterDomain: cluster.local
  clusterVersionName: v1
  pkiExpireDays: 365
  transparentMetaPrefixes: [super.example/]
  opaqueMetaPrefixes: [tenant.example/, private/]
  serviceCidr: 10.96.0.0/16
  weight: 10
  provisioner: Native
  kubernetesVersion: v1.36.3
`

// ancestor is a spec in the form that users of the API's first implementation have.
const ancestor = `
  clusterDomain: cluster.local
  clusterVersionName: cv-sample-np
  pkiExpireDays: 365
  opaqueMetaPrefixes: [tenancy.x-k8s.io]
  transparentMetaPrefixes: [k8s.net.status]
`

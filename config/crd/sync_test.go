package crd

import (
	"fmt"
	"strings"
	"testing"
)

// items returns a list of n elements in YAML.
func items(n int, element func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element(i)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func TestSyncKinds(t *testing.T) {
	const mode = `mode Referenced is for ConfigMap, Secret, ResourceClaim and ResourceClaimTemplate`
	cases := map[string]struct{ kinds, want string }{
		"Empty":            {`[]`, ""},
		"Off":              {`[{kind: Event, mode: "Off"}, {kind: Ingress, mode: "Off"}, {kind: StorageClass, mode: "Off"}]`, ""},
		"All":              {`[{kind: ConfigMap, mode: All}, {kind: Secret, mode: All}, {kind: Ingress, mode: All}]`, ""},
		"Referenced":       {`[{kind: ConfigMap, mode: Referenced}, {kind: Secret, mode: Referenced}]`, ""},
		"ReferencedClaims": {`[{kind: ResourceClaim, mode: Referenced}, {kind: ResourceClaimTemplate, mode: Referenced}]`, ""},
		"ClaimsOff":        {`[{kind: ResourceClaim, mode: "Off"}, {kind: PersistentVolumeClaim, mode: "Off"}]`, ""},
		"VolumesOff": {
			`[{kind: PersistentVolume, mode: "Off"}, {kind: PersistentVolumeClaim, mode: All}]`,
			"PersistentVolume can be off only where PersistentVolumeClaim is",
		},
		"VolumesAndClaimsOff":   {`[{kind: PersistentVolume, mode: "Off"}, {kind: PersistentVolumeClaim, mode: "Off"}]`, ""},
		"ReferencedIngress":     {`[{kind: Ingress, mode: Referenced}]`, mode},
		"ReferencedClass":       {`[{kind: StorageClass, mode: Referenced}]`, mode},
		"ConfigMapOff":          {`[{kind: ConfigMap, mode: "Off"}]`, "ConfigMap and Secret cannot be off, since pods refer to them"},
		"SecretOff":             {`[{kind: Secret, mode: "Off"}]`, "ConfigMap and Secret cannot be off, since pods refer to them"},
		"KindThatIsNotOptional": {`[{kind: Pod, mode: "Off"}]`, `Unsupported value: "Pod"`},
		"CustomResource":        {`[{kind: Certificate.cert-manager.io, mode: All}]`, "Unsupported value"},
		"UnknownMode":           {`[{kind: Ingress, mode: Some}]`, `Unsupported value: "Some"`},
		"OffAsYAMLBoolean":      {`[{kind: Ingress, mode: off}]`, "must be of type string"},
		"NoMode":                {`[{kind: Ingress}]`, "mode: Required value"},
		"NoKind":                {`[{mode: All}]`, "kind: Required value"},
		"Twice":                 {`[{kind: Ingress, mode: All}, {kind: Ingress, mode: "Off"}]`, "Duplicate value"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{sync: {kinds: "+tc.kinds+"}}")), nil), tc.want)
		})
	}
}

func TestSyncPublish(t *testing.T) {
	names := func(n int) string { return items(n, func(i int) string { return fmt.Sprint("class", i) }) }
	cases := map[string]struct{ publish, want string }{
		"Empty":       {`[]`, ""},
		"Classes":     {`[{kind: StorageClass, names: [fast, slow]}, {kind: RuntimeClass, names: [gvisor]}]`, ""},
		"AllKinds":    {`[{kind: StorageClass, names: [a]}, {kind: VolumeAttributesClass, names: [a]}, {kind: CSIDriver, names: [a]}, {kind: PriorityClass, names: [a]}, {kind: IngressClass, names: [a]}, {kind: RuntimeClass, names: [a]}, {kind: DeviceClass, names: [a]}]`, ""},
		"MostNames":   {`[{kind: StorageClass, names: ` + names(64) + `}]`, ""},
		"TooMany":     {`[{kind: StorageClass, names: ` + names(65) + `}]`, "must have at most 64 items"},
		"NoClass":     {`[{kind: ConfigMap, names: [a]}]`, `Unsupported value: "ConfigMap"`},
		"KindTwice":   {`[{kind: StorageClass, names: [a]}, {kind: StorageClass, names: [b]}]`, "Duplicate value"},
		"NameTwice":   {`[{kind: StorageClass, names: [a, a]}]`, "Duplicate value"},
		"NoNames":     {`[{kind: StorageClass, names: []}]`, "should have at least 1 items"},
		"NamesAbsent": {`[{kind: StorageClass}]`, "names: Required value"},
		"EmptyName":   {`[{kind: StorageClass, names: [""]}]`, "should be at least 1 chars long"},
		"LongName":    {`[{kind: StorageClass, names: [` + strings.Repeat("a", 254) + `]}]`, "Too long"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{sync: {publish: "+tc.publish+"}}")), nil), tc.want)
		})
	}
}

func TestSyncCustomResources(t *testing.T) {
	resource := func(group, version, resource, direction string) string {
		return fmt.Sprintf(`{group: %q, version: %q, resource: %q, direction: %q}`, group, version, resource, direction)
	}
	certificates := resource("cert-manager.io", "v1", "certificates", "Down")
	cases := map[string]struct{ resources, want string }{
		"Empty":            {`[]`, ""},
		"Down":             {`[` + certificates + `]`, ""},
		"Up":               {`[` + resource("cert-manager.io", "v1beta1", "clusterissuers", "Up") + `]`, ""},
		"ShortGroup":       {`[` + resource("example", "v1", "things", "Up") + `]`, ""},
		"TwoOfAGroup":      {`[` + certificates + `, ` + resource("cert-manager.io", "v1", "issuers", "Down") + `]`, ""},
		"SameInTwoGroups":  {`[` + certificates + `, ` + resource("example.com", "v1", "certificates", "Down") + `]`, ""},
		"Most":             {items(32, func(i int) string { return resource("example.com", "v1", fmt.Sprint("things", i), "Up") }), ""},
		"TooMany":          {items(33, func(i int) string { return resource("example.com", "v1", fmt.Sprint("things", i), "Up") }), "must have at most 32 items"},
		"InTwoVersions":    {`[` + certificates + `, ` + resource("cert-manager.io", "v2", "certificates", "Down") + `]`, "Duplicate value"},
		"InBothDirections": {`[` + certificates + `, ` + resource("cert-manager.io", "v1", "certificates", "Up") + `]`, "Duplicate value"},
		"UnknownDirection": {`[` + resource("cert-manager.io", "v1", "certificates", "Both") + `]`, `Unsupported value: "Both"`},
		"CoreGroup":        {`[` + resource("", "v1", "nodes", "Up") + `]`, "group"},
		"GroupUpperCase":   {`[` + resource("Cert-manager.io", "v1", "certificates", "Down") + `]`, "group"},
		"GroupWithDot":     {`[` + resource("cert-manager.io.", "v1", "certificates", "Down") + `]`, "group"},
		"Kind":             {`[` + resource("cert-manager.io", "v1", "Certificate", "Down") + `]`, "resource"},
		"Subresource":      {`[` + resource("cert-manager.io", "v1", "certificates/status", "Down") + `]`, "resource"},
		"NumericVersion":   {`[` + resource("cert-manager.io", "1", "certificates", "Down") + `]`, "version"},
		"NoVersion":        {`[{group: cert-manager.io, resource: certificates, direction: Down}]`, "version: Required value"},
		"NoDirection":      {`[{group: cert-manager.io, resource: certificates, version: v1}]`, "direction: Required value"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{sync: {customResources: "+tc.resources+"}}")), nil), tc.want)
		})
	}
}

func TestSyncPatches(t *testing.T) {
	const one = "one of set and jsonPatch must be given"
	field := func(path, expression string) string {
		return fmt.Sprintf(`{path: %q, expression: %q}`, path, expression)
	}
	pool := field("/spec/nodeSelector/pool", "tenant.name")
	patch := func(name, rest string) string { return `{name: ` + name + `, kinds: [Pod], ` + rest + `}` }
	cases := map[string]struct{ patches, want string }{
		"Empty":             {`[]`, ""},
		"Set":               {`[` + patch("pool", `set: [`+pool+`]`) + `]`, ""},
		"JSONPatch":         {`[` + patch("pool", `jsonPatch: "[]"`) + `]`, ""},
		"When":              {`[` + patch("pool", `when: "true", set: [`+pool+`]`) + `]`, ""},
		"WholeMetadata":     {`[` + patch("pool", `set: [`+field("/", "{}")+`]`) + `]`, ""},
		"Kinds":             {`[{name: pool, kinds: [Pod, PersistentVolumeClaim, Certificate.cert-manager.io], set: [` + pool + `]}]`, ""},
		"Most":              {items(32, func(i int) string { return patch(fmt.Sprint("p", i), `set: [`+pool+`]`) }), ""},
		"MostFields":        {`[` + patch("pool", `set: `+items(32, func(i int) string { return field(fmt.Sprint("/", i), "1") })) + `]`, ""},
		"LongestExpression": {`[` + patch("pool", `set: [`+field("/a", strings.Repeat("1", 4096))+`]`) + `]`, ""},
		"Both":              {`[` + patch("pool", `set: [`+pool+`], jsonPatch: "[]"`) + `]`, one},
		"Neither":           {`[{name: pool, kinds: [Pod]}]`, one},
		"OnlyWhen":          {`[` + patch("pool", `when: "true"`) + `]`, one},
		"TooMany":           {items(33, func(i int) string { return patch(fmt.Sprint("p", i), `set: [`+pool+`]`) }), "must have at most 32 items"},
		"TooManyFields":     {`[` + patch("pool", `set: `+items(33, func(i int) string { return field(fmt.Sprint("/", i), "1") })) + `]`, "must have at most 32 items"},
		"EmptySet":          {`[` + patch("pool", `set: []`) + `]`, "should have at least 1 items"},
		"EmptyJSONPatch":    {`[` + patch("pool", `jsonPatch: ""`) + `]`, "should be at least 2 chars long"},
		"LongJSONPatch":     {`[` + patch("pool", `jsonPatch: "`+strings.Repeat("a", 16385)+`"`) + `]`, "Too long"},
		"EmptyWhen":         {`[` + patch("pool", `when: "", set: [`+pool+`]`) + `]`, "should be at least 1 chars long"},
		"LongWhen":          {`[` + patch("pool", `when: "`+strings.Repeat("a", 4097)+`", set: [`+pool+`]`) + `]`, "Too long"},
		"NameTwice":         {`[` + patch("pool", `set: [`+pool+`]`) + `, ` + patch("pool", `jsonPatch: "[]"`) + `]`, "Duplicate value"},
		"NoName":            {`[{kinds: [Pod], set: [` + pool + `]}]`, "name: Required value"},
		"NameUpperCase":     {`[` + patch("Pool", `set: [`+pool+`]`) + `]`, "name"},
		"LongName":          {`[` + patch(strings.Repeat("a", 64), `set: [`+pool+`]`) + `]`, "Too long"},
		"NoKinds":           {`[{name: pool, set: [` + pool + `]}]`, "kinds: Required value"},
		"EmptyKinds":        {`[{name: pool, kinds: [], set: [` + pool + `]}]`, "should have at least 1 items"},
		"KindTwice":         {`[{name: pool, kinds: [Pod, Pod], set: [` + pool + `]}]`, "Duplicate value"},
		"EmptyKind":         {`[{name: pool, kinds: [""], set: [` + pool + `]}]`, "should be at least 1 chars long"},
		"PathTwice":         {`[` + patch("pool", `set: [`+pool+`, `+pool+`]`) + `]`, "Duplicate value"},
		"PathWithoutSlash":  {`[` + patch("pool", `set: [`+field("spec/a", "1")+`]`) + `]`, "path"},
		"EmptyPath":         {`[` + patch("pool", `set: [`+field("", "1")+`]`) + `]`, "path"},
		"LongPath":          {`[` + patch("pool", `set: [`+field("/"+strings.Repeat("a", 1024), "1")+`]`) + `]`, "Too long"},
		"NoExpression":      {`[` + patch("pool", `set: [{path: /a}]`) + `]`, "expression: Required value"},
		"EmptyExpression":   {`[` + patch("pool", `set: [`+field("/a", "")+`]`) + `]`, "should be at least 1 chars long"},
		"LongExpression":    {`[` + patch("pool", `set: [`+field("/a", strings.Repeat("1", 4097))+`]`) + `]`, "Too long"},
		"ValueNoExpression": {`[` + patch("pool", `set: [{path: /a, expression: 5}]`) + `]`, "must be of type string"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{sync: {patches: "+tc.patches+"}}")), nil), tc.want)
		})
	}
}

// TestSyncAndPolicyCanChange: immutable fields of a spec stay immutable, and
// spec.sync and spec.policy can change.
func TestSyncAndPolicyCanChange(t *testing.T) {
	const (
		kinds   = `sync: {kinds: [{kind: Secret, mode: All}, {kind: Ingress, mode: "Off"}]}`
		publish = `sync: {publish: [{kind: StorageClass, names: [fast]}]}`
		open    = `policy: {podSecurity: privileged, allowHostPath: true}`
		closed  = `policy: {podSecurity: restricted}`
	)
	cases := map[string]struct{ from, to, want string }{
		"SyncAdded":      {`{}`, `{` + kinds + `}`, ""},
		"SyncChanged":    {`{` + kinds + `}`, `{` + publish + `}`, ""},
		"SyncRemoved":    {`{` + kinds + `}`, `{}`, ""},
		"SyncToNoSpec":   {``, `{` + kinds + `, ` + open + `}`, ""},
		"PolicyAdded":    {`{}`, `{` + open + `}`, ""},
		"PolicyChanged":  {`{` + open + `}`, `{` + closed + `}`, ""},
		"PolicyRemoved":  {`{` + open + `}`, `{}`, ""},
		"WithFullSpec":   {full, full + "  " + kinds + "\n  " + closed + "\n", ""},
		"CIDRStays":      {`{serviceCidr: 10.96.0.0/16}`, `{serviceCidr: 10.97.0.0/16, ` + kinds + `}`, "serviceCidr is immutable"},
		"DomainStays":    {`{clusterDomain: a, ` + closed + `}`, `{clusterDomain: b, ` + open + `}`, "clusterDomain is immutable"},
		"WayStays":       {`{provisioner: Hosted}`, `{provisioner: Native, ` + publish + `}`, "provisioner is immutable"},
		"RulesStillHold": {`{` + open + `}`, `{policy: {allowHostPath: true}}`, "need podSecurity privileged"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			from, to := check.read(t, virtualCluster("red", tc.from)), check.read(t, virtualCluster("red", tc.to))
			expect(t, check.validate(to, from), tc.want)
		})
	}
}

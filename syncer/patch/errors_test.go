package patch

import (
	"fmt"
	"strings"
	"testing"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestErrors(t *testing.T) {
	cases := map[string]struct {
		patch tenancyv1alpha1.SyncPatch
		want  string
	}{
		// Patches that do not compile.
		"Syntax":             {fields("/spec/hostname", "object."), `patch "test", /spec/hostname: at 1:8: Syntax error`},
		"SyntaxSecondLine":   {fields("/spec/hostname", "'a' +\n  )"), `at 2:3: Syntax error`},
		"UnknownVariable":    {fields("/spec/hostname", "objekt.spec"), `at 1:1: undeclared reference to 'objekt'`},
		"UnknownFunction":    {fields("/spec/hostname", "now()"), `undeclared reference to 'now'`},
		"WrongTypes":         {fields("/spec/hostname", "1 + 'a'"), `no matching overload for '_+_' applied to '(int, string)'`},
		"BadRegexp":          {fields("/spec/hostname", "'a'.matches('(')"), `/spec/hostname: at 1:13: invalid matches argument`},
		"WhenSyntax":         {when("object.", fields("/spec/hostname", "'a'")), `patch "test", when: at 1:8: Syntax error`},
		"WhenIsNoBool":       {when("'true'", fields("/spec/hostname", "'a'")), `patch "test", when: it gives string and not bool`},
		"WhenIsOptional":     {when("object.?spec", fields("/spec/hostname", "'a'")), `when: it gives optional_type(dyn) and not bool`},
		"PathIsNone":         {fields("spec/hostname", "'a'"), `patch "test", spec/hostname: path must begin with /`},
		"PathIsEmpty":        {fields("", "'a'"), `path must begin with /`},
		"PathWithTilde":      {fields("/spec/a~b", "'a'"), `path must escape ~ as ~0`},
		"Both":               {both(), `one of set and jsonPatch must be given`},
		"Neither":            {fields(), `one of set and jsonPatch must be given`},
		"JSONPatchNoJSON":    {operations(`[`), `patch "test", jsonPatch: not a JSON Patch`},
		"JSONPatchNoList":    {operations(`{}`), `not a JSON Patch`},
		"JSONPatchNull":      {operations(`null`), `the patch has no operations`},
		"JSONPatchEmpty":     {operations(`[]`), `the patch has no operations`},
		"JSONPatchUnknownOp": {operations(`[{"op": "merge", "path": "/a"}]`), `unsupported operation`},
		"JSONPatchNoPath":    {operations(`[{"op": "remove"}]`), `missing path field`},
		"JSONPatchWhole":     {operations(`[{"op": "add", "path": "", "value": {}}]`), `operation 0: path must begin with /`},
		"JSONPatchCopyWhole": {operations(`[{"op": "copy", "from": "", "path": "/a"}]`), `operation 0: from must begin with /`},
		"JSONPatchNoValue":   {operations(`[{"op": "remove", "path": "/a"}, {"op": "test", "path": "/a"}]`), `operation 1: value is missing`},

		// Expressions that cannot be evaluated.
		"MissingKey":    {fields("/spec/hostname", "object.metadata.labels.pool"), `patch "test", /spec/hostname: no such key: pool`},
		"OutOfRange":    {fields("/spec/hostname", "object.spec.containers[3].name"), `index out of bounds: 3`},
		"NoOverload":    {fields("/spec/hostname", "object.spec.containers + 1"), `no such overload`},
		"DivisionBy0":   {fields("/spec/priority", "1 / (size(object.metadata.labels) - 3)"), `division by zero`},
		"UnknownTenant": {fields("/spec/hostname", "tenant.uid"), `no such key: uid`},
		"WhenMissing":   {when("self.spec.nodeName == 'a'", fields("/spec/hostname", "'a'")), `patch "test", when: no such key: nodeName`},
		"WhenNoBool":    {when("object.metadata.name", fields("/spec/hostname", "'a'")), `patch "test", when: it gives string and not bool`},
		"WhenNull":      {when("dyn(null)", fields("/spec/hostname", "'a'")), `it gives null_type and not bool`},

		// Values without a JSON form.
		"Type":      {fields("/spec/hostname", "string"), `a type has no JSON form`},
		"IntKey":    {fields("/spec/nodeSelector", "{1: 'a'}"), `a key of a map must be a string, and one is int`},
		"DeepValue": {fields("/spec/nodeSelector", "{'a': [{'b': type(1)}]}"), `a type has no JSON form`},
		"NaN":       {fields("/spec/priority", "double('NaN')"), `NaN has no JSON form`},
		"Inf":       {fields("/spec/priority", "1.0 / 0.0"), `+Inf has no JSON form`},
		"Large":     {fields("/spec/hostname", "[["+strings.Repeat("object,", 100)+"]].map(a, ["+strings.Repeat("a,", 50)+"])[0]"), `the value is too large`},
		"BigUint":   {fields("/spec/priority", "18446744073709551615u"), `18446744073709551615 is too large`},

		// Paths that cannot be set.
		"IntoText":      {fields("/spec/serviceAccountName/x", "'a'"), `"x" cannot be set in a string`},
		"IntoNumber":    {fields("/spec/containers/0/ports/0/containerPort/x", "'a'"), `"x" cannot be set in a number`},
		"NoElement":     {fields("/spec/containers/1/image", "'a'"), `no element 1 in a list of 1; use - to append one`},
		"NoNumber":      {fields("/spec/containers/web/image", "'a'"), `"web" is not an index of a list`},
		"SignedNumber":  {fields("/spec/containers/+0/image", "'a'"), `"+0" is not an index of a list`},
		"LeadingZero":   {fields("/spec/containers/00/image", "'a'"), `"00" is not an index of a list`},
		"Negative":      {fields("/spec/containers/-1/image", "'a'"), `"-1" is not an index of a list`},
		"RemoveNoIndex": {fields("/spec/containers/web", "null"), `"web" is not an index of a list`},

		// Results that do not fit the type.
		"UnknownField":     {fields("/spec/hostname", "'a'", "/spec/poolName", "'a'"), `patch "test", /spec/poolName: unknown field "spec.poolName"`},
		"OtherCase":        {fields("/spec/hostName", "'a'"), `unknown field "spec.hostName"`},
		"TextForNumber":    {fields("/spec/priority", "'high'"), `patch "test", /spec/priority: a JSON string does not fit spec.priority`},
		"NumberForText":    {fields("/spec/nodeSelector/pool", "5"), `a JSON number does not fit spec.nodeSelector`},
		"TextForObject":    {fields("/spec/nodeSelector", "'a'"), `a JSON string does not fit spec.nodeSelector`},
		"Fraction":         {fields("/spec/priority", "0.5"), `a JSON number 0.5 does not fit spec.priority`},
		"NumberTooLarge":   {fields("/spec/priority", "3000000000"), `a JSON number 3000000000 does not fit spec.priority`},
		"NoQuantity":       {fields("/spec/containers/0/resources/limits/cpu", "'much'"), `/spec/containers/0/resources/limits/cpu: quantities must match`},
		"MetadataIsText":   {fields("/metadata", "'a'"), `patch "test", /metadata: metadata must be an object`},
		"LabelIsNumber":    {fields("/metadata/labels/a", "1"), `a JSON number does not fit metadata.labels`},
		"MetadataUnknown":  {fields("/metadata/lables/a", "'b'"), `unknown field "metadata.lables"`},
		"JSONPatchMisfit":  {operations(`[{"op": "add", "path": "/spec/poolName", "value": 1}]`), `patch "test", jsonPatch: unknown field "spec.poolName"`},
		"JSONPatchMissing": {operations(`[{"op": "add", "path": "/spec/nodeSelector/pool", "value": "a"}]`), `patch "test", jsonPatch: add operation does not apply`},
		"JSONPatchTest":    {operations(`[{"op": "test", "path": "/spec/hostname", "value": "a"}]`), `test`},
		"JSONPatchIndex":   {operations(`[{"op": "add", "path": "/spec/containers/-1", "value": {}}]`), `invalid index`},
		"JSONPatchPanics":  {operations(`[{"op": "test", "path": "/spec/containers", "value": [null]}]`), `jsonPatch: the operations cannot be applied`},
		"JSONPatchCopies":  {operations(doubling(40)), `the accumulated size increase of copy`},
		"JSONPatchNothing": {operations(`[{"op": "remove", "path": "/spec/hostname"}]`), `nonexistent key: hostname`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tryPod(t, tc.patch)
			expect(t, err, tc.want)
		})
	}
}

// doubling returns a JSON Patch that doubles the size of an object the given
// number of times.
func doubling(times int) string {
	copies := make([]string, times)
	for i := range copies {
		copies[i] = fmt.Sprintf(`{"op": "copy", "from": "/spec", "path": "/spec/again%d"}`, i)
	}
	return "[" + strings.Join(copies, ",") + "]"
}

func both() tenancyv1alpha1.SyncPatch {
	p := fields("/spec/hostname", "'a'")
	p.JSONPatch = `[{"op": "remove", "path": "/a"}]`
	return p
}

func TestErrorsOfUnstructured(t *testing.T) {
	cases := map[string]struct{ path, expression, want string }{
		"LabelIsNumber":   {"/metadata/labels/a", "1", "a JSON number does not fit metadata.labels"},
		"LabelsAreText":   {"/metadata/labels", "'a'", "a JSON string does not fit metadata.labels"},
		"FinalizerIsText": {"/metadata/finalizers", "'a'", "a JSON string does not fit metadata.finalizers"},
		"MetadataUnknown": {"/metadata/lables/a", "'b'", `unknown field "metadata.lables"`},
		"MetadataIsText":  {"/metadata", "'a'", "metadata must be an object"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tryCertificate(t, fields(tc.path, tc.expression))
			expect(t, err, tc.want)
		})
	}
}

// TestBadPatchStopsItsKinds checks that a bad patch does not block objects of
// other kinds.
func TestBadPatchStopsItsKinds(t *testing.T) {
	bad := tenancyv1alpha1.SyncPatch{Name: "bad", Kinds: []string{"Pod", certificates}, Set: fields("/a", "b").Set}
	good := tenancyv1alpha1.SyncPatch{Name: "good", Kinds: []string{"Pod", "Namespace"}, Set: fields("/metadata/labels/a", "'b'").Set}
	patches := set(good, bad)
	for kind, object := range objects() {
		err := patches.Apply(t.Context(), kind, object, tenantPod(), blue)
		if kind == "Pod" || kind == certificates {
			expect(t, err, `patch "bad", /a: at 1:1: undeclared reference to 'b'`)
		} else if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// TestTenantReadsNoSuperNames checks that errors do not contain the cluster
// key, which expressions can read.
func TestTenantReadsNoSuperNames(t *testing.T) {
	for name, patch := range map[string]tenancyv1alpha1.SyncPatch{
		"Key":       fields("/spec/hostname", "object.metadata.labels[tenant.key]"),
		"Namespace": fields("/spec/hostname", "object.metadata.labels[object.metadata.namespace]"),
		"Path":      fields("/spec/team-71a1c3-blue", "'a'"),
		"Test":      operations(`[{"op": "remove", "path": "/metadata/labels/team-71a1c3-blue-shop"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryPod(t, patch)
			if err == nil || strings.Contains(err.Error(), "71a1c3") {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestCostIsSharedByAllPatches checks that many expressions share one budget.
func TestCostIsSharedByAllPatches(t *testing.T) {
	text := "'" + strings.Repeat("x", 2000) + "'"
	search := text + ".indexOf(" + text + ")"
	costly := fields("/spec/priority", search+strings.Repeat(" + "+search, 8))
	if _, err := tryPod(t, costly, costly); err != nil {
		t.Error(err)
	}
	_, err := tryPod(t, costly, costly, costly, costly, costly, costly)
	expect(t, err, "too many steps, together with those before it")
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

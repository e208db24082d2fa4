package resources

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// decisionsFile lists how each field of each kind that is synced down is
// synced: a type, a field by its JSON name, a word, and the reason or the
// condition.
const decisionsFile = "testdata/fields.txt"

var rewrite = flag.Bool("rewrite", false, "write the fields that are there into "+decisionsFile+"; new ones are undecided")

// decision is how a field is synced.
type decision string

const (
	copied      decision = "copied"     // the copy has the same value, except for fields in it with another decision
	changed     decision = "translated" // to the equivalent value in the super cluster
	checked     decision = "checked"    // the copy has the same value, if the referenced object is offered, or belongs to the tenant
	policied    decision = "policy"     // if spec.policy or spec.sync allows it
	supers      decision = "super's"    // the super cluster sets it
	dropped     decision = "dropped"    // the copy does not have it
	rejected    decision = "rejected"   // an object with it has no copy
	tenants     decision = "tenant's"   // it belongs to the tenant's control plane, and is not part of the declaration
	undecided   decision = "?"
	fieldLayout          = "%-75s %-10s %s"
)

// ended reports whether the fields in a field need no decision, since none of
// them is synced down.
func (d decision) ended() bool {
	return slices.Contains([]decision{supers, dropped, rejected, tenants}, d)
}

// decided is a line of the file.
type decided struct {
	decision decision
	reason   string
}

// readDecisions reads the file.
func readDecisions(t *testing.T) map[string]decided {
	t.Helper()
	file, err := os.Open(decisionsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decisions := map[string]decided{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 2 || words[0] == "#" {
			continue
		}
		if _, twice := decisions[words[0]]; twice {
			t.Errorf("%s is decided twice", words[0])
		}
		decisions[words[0]] = decided{decision(words[1]), strings.Join(words[2:], " ")}
	}
	return decisions
}

// whole are types whose fields are not inspected.
var whole = []reflect.Type{
	reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](),
	reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[runtime.RawExtension](),
}

// element returns the struct type of a field, through pointers, slices and
// maps; nil if it has none.
func element(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return element(t.Elem())
	case reflect.Struct:
		if !slices.Contains(whole, t) {
			return t
		}
	default:
	}
	return nil
}

// pathOf returns the type and the JSON name of a field; empty for an embedded
// field.
func pathOf(in reflect.Type, field reflect.StructField) string {
	name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name == "" && (strings.Contains(options, "inline") || field.Anonymous) {
		return ""
	}
	elements := strings.Split(in.PkgPath(), "/")
	return fmt.Sprintf("%s.%s.%s", strings.Join(elements[len(elements)-2:], "/"), in.Name(), name)
}

// fields returns the paths of all fields that can be reached from a type
// through fields that are synced down.
func fields(in reflect.Type, decisions map[string]decided, seen map[reflect.Type]bool, add func(string)) {
	if in == nil || seen[in] || in == reflect.TypeFor[metav1.TypeMeta]() {
		return
	}
	seen[in] = true
	var within []reflect.Type
	for field := range in.Fields() {
		path := pathOf(in, field)
		if path != "" {
			add(path)
		}
		if !decisions[path].decision.ended() {
			within = append(within, element(field.Type))
		}
	}
	for _, t := range within {
		fields(t, decisions, seen, add)
	}
}

// downKind is a kind that is synced down, without its type.
type downKind struct{ value reflect.Value }

// downKinds returns all kinds that are synced down, except custom resources.
func downKinds() []downKind {
	var kinds []downKind
	for _, k := range All(Agent{}, nil) {
		if v := reflect.ValueOf(k); v.FieldByName("Mirror").IsValid() {
			kinds = append(kinds, downKind{v})
		}
	}
	return kinds
}

func (k downKind) name() string { return k.value.FieldByName("Name").String() }

func (k downKind) object() client.Object {
	return k.value.FieldByName("Object").Interface().(client.Object)
}

// desired returns the copy of an object.
func (k downKind) desired(v kinds.View, tenant client.Object) (client.Object, error) {
	out := k.value.FieldByName("Desired").Call([]reflect.Value{reflect.ValueOf(v), reflect.ValueOf(tenant)})
	err, _ := reflect.TypeAssert[error](out[1])
	return out[0].Interface().(client.Object), err
}

// TestEveryFieldIsDecided fails for a field of a new version of Kubernetes
// until the file has a decision for it.
func TestEveryFieldIsDecided(t *testing.T) {
	decisions := readDecisions(t)
	var paths []string
	seen := map[reflect.Type]bool{}
	for _, k := range downKinds() {
		fields(reflect.TypeOf(k.object()).Elem(), decisions, seen, func(path string) { paths = append(paths, path) })
	}
	if *rewrite {
		writeDecisions(t, decisions, paths)
	}
	words := []decision{copied, changed, checked, policied, supers, dropped, rejected, tenants}
	for _, path := range paths {
		d := decisions[path]
		switch {
		case d.decision == "" || d.decision == undecided:
			t.Errorf("%s is synced down without a decision: add it to %s", path, decisionsFile)
		case !slices.Contains(words, d.decision):
			t.Errorf("%s: %q is none of %q", path, d.decision, words)
		case d.reason == "" && d.decision != copied:
			t.Errorf("%s: %s, without a reason", path, d.decision)
		}
		delete(decisions, path)
	}
	for path := range decisions {
		t.Errorf("%s is decided in %s and is not synced down", path, decisionsFile)
	}
}

// writeDecisions writes all fields in the order in which they are found.
func writeDecisions(t *testing.T, decisions map[string]decided, paths []string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("# How each field is synced down. syncer/resources/fields_test.go explains the words and checks the list.\n")
	was := ""
	for _, path := range paths {
		if in := path[:strings.LastIndex(path, ".")]; in != was {
			text.WriteString("\n")
			was = in
		}
		d, ok := decisions[path]
		if !ok {
			d.decision = undecided
		}
		text.WriteString(strings.TrimRight(fmt.Sprintf(fieldLayout, path, d.decision, d.reason), " ") + "\n")
	}
	if err := os.WriteFile(decisionsFile, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDecisionsHold checks, with every field set that needs no policy, that a
// copy has the copied fields and not the dropped ones.
func TestDecisionsHold(t *testing.T) {
	decisions := readDecisions(t)
	for _, k := range downKinds() {
		t.Run(k.name(), func(t *testing.T) {
			tenant := fill(k.object().DeepCopyObject().(client.Object))
			if pod, isPod := tenant.(*corev1.Pod); isPod {
				everyPodField(pod)
			}
			clearAll(reflect.ValueOf(tenant).Elem(), decisions)
			super, err := k.desired(view, tenant)
			if err != nil {
				t.Fatal(err)
			}
			hold(t, decisions, reflect.ValueOf(tenant).Elem(), reflect.ValueOf(super).Elem())
		})
	}
}

// clearAll clears the fields of an object that would be rejected, even by a
// policy that allows nothing.
func clearAll(v reflect.Value, decisions map[string]decided) {
	switch v.Kind() {
	case reflect.Pointer:
		clearAll(v.Elem(), decisions)
	case reflect.Slice:
		for i := range v.Len() {
			clearAll(v.Index(i), decisions)
		}
	case reflect.Struct:
		if slices.Contains(whole, v.Type()) {
			return
		}
		for i := range v.NumField() {
			if d := decisions[pathOf(v.Type(), v.Type().Field(i))].decision; d == rejected || d == policied {
				v.Field(i).SetZero()
			} else {
				clearAll(v.Field(i), decisions)
			}
		}
	default:
	}
}

// hold compares a struct of a tenant's object with that of the copy.
func hold(t *testing.T, decisions map[string]decided, tenant, super reflect.Value) {
	t.Helper()
	for i := range tenant.NumField() {
		path := pathOf(tenant.Type(), tenant.Type().Field(i))
		from, to := tenant.Field(i), super.Field(i)
		d := decisions[path].decision
		switch {
		case d == dropped:
			if !to.IsZero() {
				t.Errorf("%s is %s, and the copy has %v", path, d, to)
			}
		case from.Type() != reflect.TypeFor[metav1.TypeMeta]() && from.Type() != reflect.TypeFor[metav1.ObjectMeta]() && !d.ended():
			holdValue(t, decisions, path, from, to)
		}
	}
}

// holdValue compares a value that is synced down: a copied value must be equal,
// others are compared as far as they have the same form.
func holdValue(t *testing.T, decisions map[string]decided, path string, from, to reflect.Value) {
	t.Helper()
	same := decisions[path].decision == copied
	switch in := element(from.Type()); {
	case in == nil:
		if same && !semanticEqual(from.Interface(), to.Interface()) {
			t.Errorf("%s is copied, and is %v in the tenant and %v in the copy", path, from, to)
		}
	case from.Kind() == reflect.Struct:
		hold(t, decisions, from, to)
	case from.Kind() == reflect.Pointer && !from.IsNil() && !to.IsNil():
		holdValue(t, decisions, path, from.Elem(), to.Elem())
	case from.Kind() == reflect.Slice && from.Len() == to.Len():
		for i := range from.Len() {
			holdValue(t, decisions, path, from.Index(i), to.Index(i))
		}
	case same && (!from.IsZero() || !to.IsZero()):
		t.Errorf("%s is copied, and is %v in the tenant and %v in the copy", path, from, to)
	}
}

// TestMetadataOfCustomResourcesStays checks that the same list applies to the
// metadata of custom resources.
func TestMetadataOfCustomResourcesStays(t *testing.T) {
	tenant := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "1"}}}
	tenant.SetLabels(map[string]string{"app": "web", "example.com/a": "1"})
	tenant.SetAnnotations(map[string]string{"example.com/a": "1"})
	meta := view.Tenant.Down("Widget.example.com", tenant, client.ObjectKey{})
	for key := range meta.Labels {
		if !strings.HasPrefix(key, "tenancy.x-k8s.io/") {
			t.Errorf("label %s is synced down", key)
		}
	}
	for key := range meta.Annotations {
		if !strings.HasPrefix(key, "tenancy.x-k8s.io/") {
			t.Errorf("annotation %s is synced down", key)
		}
	}
}

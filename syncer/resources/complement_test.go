package resources

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selectorOf parses the text of a selector.
func selectorOf(t *testing.T, text string) *metav1.LabelSelector {
	t.Helper()
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

func TestComplement(t *testing.T) {
	for text, want := range map[string]string{
		"nothing":                       "<none>",
		"":                              "", // an empty selector selects everything
		"app=web":                       "app notin (web)",
		"app=web;app=db":                "app notin (db,web)",
		"app=web;":                      "",
		"app in (web,db)":               "app notin (db,web)",
		"app notin (web)":               "app in (web)",
		"app;!tier":                     "!app,tier",
		"app=web,tier=front":            "app notin (web) | tier notin (front)",
		"app=web;app=web,tier=front":    "app notin (web)",
		"app=a,of=x;app=b,of=x":         "app notin (a,b) | of notin (x)",
		"a=1,b=1;a=1,c=1;a=1,d=1;a=1,e": "a notin (1) | b notin (1),c notin (1),d notin (1),!e",
		"a=1,b=1;c=1,d=1;e=1,f=1;g=1,h=1;i=1,j=1": "", // too many
	} {
		var selectors []*metav1.LabelSelector
		for each := range strings.SplitSeq(text, ";") {
			if text != "nothing" {
				selectors = append(selectors, selectorOf(t, each))
			}
		}
		var got []string
		for _, selector := range complement(selectors, 16) {
			got = append(got, metav1.FormatLabelSelector(&selector))
		}
		if joined := strings.Join(got, " | "); joined != want {
			t.Errorf("%q: got %q, want %q", text, joined, want)
		}
	}
}

// TestComplementIsExact: of all label sets, the complement selects those that no
// selector does, and no others.
func TestComplementIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	operators := []metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}
	for range 2000 {
		var selectors []*metav1.LabelSelector
		for range random.IntN(4) {
			selector := &metav1.LabelSelector{}
			for range random.IntN(4) {
				e := metav1.LabelSelectorRequirement{Key: string(rune('a' + random.IntN(3))), Operator: operators[random.IntN(4)]}
				if e.Operator == "In" || e.Operator == "NotIn" {
					e.Values = []string{"1", "2", "3"}[random.IntN(2) : 2+random.IntN(2)]
				}
				selector.MatchExpressions = append(selector.MatchExpressions, e)
			}
			if random.IntN(2) == 0 {
				metav1.AddLabelToSelector(selector, "a", "1")
			}
			selectors = append(selectors, selector)
		}
		complements := complement(selectors, 1000)
		for _, set := range labelSets() {
			none := !slices.ContainsFunc(selectors, func(s *metav1.LabelSelector) bool { return selects(s, set) })
			some := slices.ContainsFunc(complements, func(s metav1.LabelSelector) bool { return selects(&s, set) })
			if none != some {
				t.Fatalf("%s: none selects it: %t, the complement does: %t; %s; %s", set, none, some, selectorTexts(selectors), complements)
			}
		}
	}
}

// labelSets returns all sets of three labels with three values.
func labelSets() []labels.Set {
	sets := []labels.Set{{}}
	for _, key := range []string{"a", "b", "c"} {
		for _, set := range slices.Clone(sets) {
			for _, value := range []string{"1", "2", "3"} {
				sets = append(sets, labels.Merge(set, labels.Set{key: value}))
			}
		}
	}
	return sets
}

func selectorTexts(selectors []*metav1.LabelSelector) string {
	var all []string
	for _, each := range selectors {
		all = append(all, metav1.FormatLabelSelector(each))
	}
	return fmt.Sprint(all)
}

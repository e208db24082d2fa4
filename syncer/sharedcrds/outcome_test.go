package sharedcrds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestCondition(t *testing.T) {
	of := &subject{name: "widgets.example.com"}
	changed := apierrors.NewConflict(runtimeschema.GroupResource{Resource: "customresourcedefinitions"}, of.name, errors.New("changed"))
	tests := map[string]struct {
		errs           []error
		status, reason string
		contains       string
		again          time.Duration
	}{
		"all shared":           {[]error{nil, nil}, "True", tenancyv1alpha1.ReasonShared, "", 0},
		"a conflict":           {[]error{nil, errLeft, conflict{errors.New("its scope")}}, "False", tenancyv1alpha1.ReasonConflict, "widgets.example.com: its scope", 0},
		"objects are left":     {[]error{fmt.Errorf("%w: 1", errLeft), nil}, "False", tenancyv1alpha1.ReasonObjectsLeft, "kept", 0},
		"changed meanwhile":    {[]error{changed}, "False", tenancyv1alpha1.ReasonRetrying, "changed", time.Second},
		"a failure":            {[]error{errors.New("boom")}, "False", tenancyv1alpha1.ReasonRetrying, "boom", 0},
		"control characters":   {[]error{errors.New("\x1b[31mred\r\n\u202edone\x00\xff")}, "False", tenancyv1alpha1.ReasonRetrying, ":  [31mred   done ", 0},
		"a very long failure":  {[]error{errors.New(strings.Repeat("ж", 1<<10))}, "False", tenancyv1alpha1.ReasonRetrying, "жжж", 0},
		"conflicts of 40 CRDs": {slices.Repeat([]error{conflict{errors.New(strings.Repeat("x", 1<<10))}}, 40), "False", tenancyv1alpha1.ReasonConflict, "xxx", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var all outcomes
			for _, err := range tt.errs {
				all = append(all, of.outcome(err))
			}
			c := all.condition(3)
			if string(c.Status) != tt.status || c.Reason != tt.reason || !strings.Contains(c.Message, tt.contains) || len(c.Message) > maxMessage {
				t.Errorf("%s/%s, %d bytes: %.200s", c.Status, c.Reason, len(c.Message), c.Message)
			}
			if all.again() != tt.again || c.ObservedGeneration != 3 {
				t.Errorf("again after %s, of generation %d", all.again(), c.ObservedGeneration)
			}
		})
	}
	if c := (outcomes{}).condition(3); c != (*metav1.Condition)(nil) {
		t.Errorf("nothing is shared, and the condition is %v", c)
	}
}

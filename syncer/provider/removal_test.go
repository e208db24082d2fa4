package provider

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// confirming returns a VirtualCluster with an answer of its admin.
func confirming(answer string) *tenancyv1alpha1.VirtualCluster {
	return &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{names.ConfirmRemoval: answer},
	}}
}

func TestRemovalIsAskedOnce(t *testing.T) {
	var r removal
	if n := r.unconfirmed(); n != 0 {
		t.Errorf("before a request, the confirmation is about %d pods", n)
	}
	isNew, err := r.ask(7)
	if !isNew || err == nil || r.unconfirmed() != 7 {
		t.Errorf("asked first: new %t, %v, about %d pods", isNew, err, r.unconfirmed())
	}
	isNew, err = r.ask(6)
	if isNew || err == nil || r.unconfirmed() != 7 {
		t.Errorf("asked again for fewer: new %t, %v, about %d pods", isNew, err, r.unconfirmed())
	}
	isNew, err = r.ask(9)
	if isNew || err == nil || r.unconfirmed() != 9 {
		t.Errorf("asked again for more: new %t, %v, about %d pods", isNew, err, r.unconfirmed())
	}
}

func TestRemovalIsConfirmedByNumber(t *testing.T) {
	for name, tc := range map[string]struct {
		answer string
		open   int
	}{
		"the number":        {"7", 0},
		"more":              {"8", 0},
		"fewer":             {"6", 7},
		"none":              {"", 7},
		"an invalid number": {"yes", 7},
		"below nothing":     {"-7", 7},
	} {
		t.Run(name, func(t *testing.T) {
			var r removal
			_, _ = r.ask(7)
			r.confirm(confirming(tc.answer))
			if got := r.unconfirmed(); got != tc.open {
				t.Errorf("the question is about %d pods, want %d", got, tc.open)
			}
			if isNew, err := r.ask(7); (err == nil) != (tc.open == 0) || isNew {
				t.Errorf("asked again: new %t, %v", isNew, err)
			}
		})
	}
}

func TestAnAnswerCountsForNoMoreThanItSays(t *testing.T) {
	var r removal
	_, _ = r.ask(7)
	r.confirm(confirming("7"))
	if _, err := r.ask(8); err == nil || r.unconfirmed() != 8 {
		t.Errorf("one more pod: %v, about %d pods", err, r.unconfirmed())
	}
	r.confirm(confirming("8"))
	r.confirm(&tenancyv1alpha1.VirtualCluster{}) // removed
	if isNew, err := r.ask(6); err == nil || !isNew {
		t.Errorf("after the answer was removed: new %t, %v", isNew, err)
	}
}

// TestAnotherClusterIsConfirmedOnce checks that an admin who confirms another
// cluster also confirms the deletion of the previous one's pods.
func TestAnotherClusterIsConfirmedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r removal
		r.waive()
		r.confirm(&tenancyv1alpha1.VirtualCluster{})
		if _, err := r.ask(1000); err != nil || r.unconfirmed() != 0 {
			t.Errorf("at once: %v, about %d pods", err, r.unconfirmed())
		}
		time.Sleep(waiver)
		if _, err := r.ask(6); err == nil {
			t.Error("a later loss is not asked about")
		}
	})
}

func TestTheQuestionSaysHowToAnswer(t *testing.T) {
	p := unconfirmedRemoval(12)
	if p.reason != tenancyv1alpha1.ReasonRemovalUnconfirmed || !strings.Contains(p.message, names.ConfirmRemoval+"=12") {
		t.Errorf("%s: %s", p.reason, p.message)
	}
}

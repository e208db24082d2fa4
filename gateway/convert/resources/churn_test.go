package resources

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

const key = "team-1a2b3c-red"

// serving is a CRD of a tenant in the super cluster, which serves some versions.
func serving(versions ...string) *CRD {
	crd := &CRD{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{names.Converted: key}}}
	crd.Status.AcceptedNames.Plural = "widgets"
	for _, version := range []string{"v1", "v2"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version})
		for _, each := range versions {
			crd.Spec.Versions[len(crd.Spec.Versions)-1].Served = crd.Spec.Versions[len(crd.Spec.Versions)-1].Served || each == version
		}
	}
	return with(crd, apiextensionsv1.Established, apiextensionsv1.ConditionTrue)
}

func with(crd *CRD, condition apiextensionsv1.CustomResourceDefinitionConditionType, status apiextensionsv1.ConditionStatus) *CRD {
	crd = crd.DeepCopy()
	crd.Status.Conditions = append([]apiextensionsv1.CustomResourceDefinitionCondition{{Type: condition, Status: status}}, crd.Status.Conditions...)
	return crd
}

func TestWhatCountsAsChurn(t *testing.T) {
	created := serving("v1")
	created.Status.Conditions = nil
	renamed := serving("v1")
	renamed.Status.AcceptedNames.Plural = "gadgets"
	relabelled := serving("v1")
	relabelled.Annotations = map[string]string{"a": "b"}
	for name, tt := range map[string]struct {
		old, updated *CRD // no updated one: it was deleted
		want         int
	}{
		"a deletion":                      {serving("v1"), nil, 1},
		"a deletion of one that is going": {with(serving("v1"), apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue), nil, 0},
		"a deletion that begins":          {serving("v1"), with(serving("v1"), apiextensionsv1.Terminating, apiextensionsv1.ConditionTrue), 1},
		"a new one is established":        {created, serving("v1"), 0},
		"it is established no longer":     {serving("v1"), with(serving("v1"), apiextensionsv1.Established, apiextensionsv1.ConditionFalse), 1},
		"a version more":                  {serving("v1"), serving("v1", "v2"), 1},
		"a version less":                  {serving("v1", "v2"), serving("v2"), 1},
		"another version":                 {serving("v1"), serving("v2"), 1},
		"no version":                      {serving("v1"), serving(), 1},
		"the versions as before":          {serving("v1"), relabelled, 0},
		"another name":                    {serving("v1"), renamed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			churn := NewChurn()
			if tt.updated == nil {
				churn.Handler().OnDelete(cache.DeletedFinalStateUnknown{Obj: tt.old})
			} else {
				churn.Handler().OnUpdate(tt.old, tt.updated)
			}
			if got := counted(churn, key); got != tt.want {
				t.Errorf("counted %d, want %d", got, tt.want)
			}
		})
	}
}

func counted(churn *Churn, key string) int {
	return ChurnBurst - int(math.Round(churn.changes.Left(key)))
}

func TestChurnOverTime(t *testing.T) { synctest.Test(t, testChurnOverTime) }

func testChurnOverTime(t *testing.T) {
	churn := NewChurn()
	for i := range ChurnBurst {
		if wait := churn.Wait(key); wait != 0 {
			t.Fatalf("a wait of %s after %d changes", wait, i)
		}
		churn.Handler().OnDelete(serving("v1"))
	}
	wantWait := func(want time.Duration) {
		t.Helper()
		if got := churn.Wait(key); (got - want).Abs() > time.Millisecond {
			t.Errorf("a wait of %s, want %s", got, want)
		}
	}
	const each = time.Minute / ChurnPerMinute
	wantWait(each)
	for range 3 { // they were under way
		churn.Handler().OnDelete(serving("v1"))
	}
	wantWait(4 * each)
	time.Sleep(3 * each)
	wantWait(each)
	time.Sleep(each + time.Millisecond)
	wantWait(0)
	if wait := churn.Wait("another"); wait != 0 {
		t.Errorf("another tenant waits for %s", wait)
	}
}

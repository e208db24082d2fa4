package syncdown

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

func TestShortened(t *testing.T) {
	m := kindstest.Rich().Erase().Down.Mirror
	going := func(seconds int64) *corev1.Pod {
		pod := withGrace(kindstest.Named("web"), seconds)
		pod.DeletionTimestamp = new(metav1.Now())
		return pod
	}
	copyOf := func(uid string, pod *corev1.Pod) *corev1.Pod {
		pod.Annotations = map[string]string{names.UID: uid}
		return pod
	}
	untimed := going(0)
	untimed.DeletionGracePeriodSeconds = nil
	for name, tc := range map[string]struct {
		tenant, super client.Object
		want          bool
	}{
		"less time than the copy has": {going(0), going(30), true},
		"as much":                     {going(30), going(30), false},
		"more than the policy allows, as the copy has":    {going(1 << 62), going(1 << 61), true},
		"the most that the policy allows":                 {going(1 << 62), going(3600), false},
		"less than none":                                  {going(-1), going(30), true},
		"less than none, which is a second":               {going(-1), going(1), false},
		"more":                                            {going(30), going(1), false},
		"the copy is not being deleted":                   {going(0), kindstest.Named("web"), false},
		"the tenant's is not":                             {kindstest.Named("web"), going(30), false},
		"there is no copy":                                {going(0), nil, false},
		"there is no tenant's object":                     {nil, going(30), false},
		"the tenant's has no time noted":                  {untimed, going(30), false},
		"the copy has no time noted":                      {going(0), untimed, false},
		"the tenant's ended by force":                     {nil, copyOf("forced", going(30)), true},
		"the tenant's ended by force, as did its copy":    {nil, copyOf("forced", going(0)), false},
		"the tenant's ended by force, and there is a new": {kindstest.Named("web"), copyOf("forced", going(30)), true},
		"a new one has less time":                         {going(0), copyOf("another", going(30)), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &gracePeriods{session.NewTenant(translate.Tenant{}), removals{forced: "forced"}}
			if got := s.shortened(m, session.Objects{Tenant: tc.tenant, Super: tc.super}); got != tc.want {
				t.Errorf("shortened: %t, want %t", got, tc.want)
			}
		})
	}
}

func withGrace(pod *corev1.Pod, seconds int64) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionGracePeriodSeconds = &seconds
	return pod
}

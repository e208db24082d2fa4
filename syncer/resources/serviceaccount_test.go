package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/engine"
)

// TestServiceAccountIsAName: whatever the tenant's has, no token, no secret and no credentials of a registry go with the copy.
func TestServiceAccountIsAName(t *testing.T) {
	k := kindOf[engine.Down[*corev1.ServiceAccount]](t, ServiceAccount())
	if k.OnDemand || !k.Adopt {
		t.Errorf("on demand %t, adopt %t; want adopt alone", k.OnDemand, k.Adopt)
	}
	got, err := k.Desired(view, &corev1.ServiceAccount{
		ObjectMeta:                   meta("default"),
		Secrets:                      []corev1.ObjectReference{{Name: "token"}},
		ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "registry"}},
		AutomountServiceAccountToken: new(true),
	})
	want := &corev1.ServiceAccount{AutomountServiceAccountToken: new(false)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
	}
}

func TestServiceAccountMerge(t *testing.T) {
	k := kindOf[engine.Down[*corev1.ServiceAccount]](t, ServiceAccount())
	for name, was := range map[string]*bool{"unset": nil, "mounted": new(true), "not mounted": new(false)} {
		t.Run(name, func(t *testing.T) {
			super := &corev1.ServiceAccount{
				ObjectMeta:                   superMeta("default"),
				AutomountServiceAccountToken: was,
				ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "the-super-cluster-s-own"}},
			}
			desired, err := k.Desired(view, &corev1.ServiceAccount{})
			if err != nil {
				t.Fatal(err)
			}
			k.Merge(super, desired)
			want := &corev1.ServiceAccount{
				ObjectMeta:                   superMeta("default"),
				AutomountServiceAccountToken: new(false),
				ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "the-super-cluster-s-own"}},
			}
			if diff := cmp.Diff(want, super); diff != "" {
				t.Errorf("copy (-want +got):\n%s", diff)
			}
		})
	}
}

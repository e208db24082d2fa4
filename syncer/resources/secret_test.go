package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

func TestSecretGoesDown(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Secret]](t, Secret())
	if !k.OnDemand || k.Adopt != nil {
		t.Errorf("on demand %t, adopt %t; want on demand alone", k.OnDemand, k.Adopt != nil)
	}
	data := map[string][]byte{"a": {1}}
	tests := map[string]struct {
		tenant, want *corev1.Secret
	}{
		"data and type": {
			&corev1.Secret{ObjectMeta: meta("s"), Type: corev1.SecretTypeTLS, Data: data, Immutable: new(true)},
			&corev1.Secret{Type: corev1.SecretTypeTLS, Data: data, Immutable: new(true)},
		},
		"a service account's token is opaque": {
			&corev1.Secret{ObjectMeta: meta("s"), Type: corev1.SecretTypeServiceAccountToken, Data: data},
			&corev1.Secret{Type: corev1.SecretTypeOpaque, Data: data},
		},
		"credentials of a registry stay what they are": {
			&corev1.Secret{ObjectMeta: meta("s"), Type: corev1.SecretTypeDockerConfigJson, Data: data},
			&corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: data},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := k.Desired(view, tt.tenant)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("error %v, copy (-want +got):\n%s", err, diff)
			}
			// An existing copy with the converted type is not recreated.
			if k.Replace(got.DeepCopy(), got) {
				t.Error("the copy would be replaced by itself")
			}
		})
	}
}

func TestSecretMerge(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Secret]](t, Secret())
	super := &corev1.Secret{
		ObjectMeta: superMeta("s"), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"a": {9}, "gone": {1}},
	}
	k.Merge(super, &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"a": {1}}, Immutable: new(true)})
	want := &corev1.Secret{
		ObjectMeta: superMeta("s"), Type: corev1.SecretTypeTLS, Data: map[string][]byte{"a": {1}}, Immutable: new(true),
	}
	if diff := cmp.Diff(want, super); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
}

func TestSecretReplace(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Secret]](t, Secret())
	one := func(kind corev1.SecretType, value byte, immutable *bool) *corev1.Secret {
		return &corev1.Secret{Type: kind, Data: map[string][]byte{"a": {value}}, Immutable: immutable}
	}
	opaque, tls, yes := corev1.SecretTypeOpaque, corev1.SecretTypeTLS, new(true)
	tests := map[string]struct {
		super, desired *corev1.Secret
		want           bool
	}{
		"mutable data is changed":                {one(opaque, 1, nil), one(opaque, 2, nil), false},
		"data that becomes immutable is changed": {one(opaque, 1, nil), one(opaque, 2, yes), false},
		"equal immutable data stays":             {one(opaque, 1, yes), one(opaque, 1, yes), false},
		"immutable data that differs":            {one(opaque, 1, yes), one(opaque, 2, yes), true},
		"immutable in the copy only":             {one(opaque, 1, yes), one(opaque, 1, nil), true},
		"another type":                           {one(opaque, 1, nil), one(tls, 1, nil), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := k.Replace(tt.super, tt.desired); got != tt.want {
				t.Errorf("Replace = %t, want %t", got, tt.want)
			}
		})
	}
}

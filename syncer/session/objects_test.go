package session_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds/kindstest"
	"github.com/virtualcluster/virtualcluster/syncer/session"
)

func TestStand(t *testing.T) {
	deleted := kindstest.Named("web")
	deleted.DeletionTimestamp = new(metav1.Now())
	tests := map[string]struct {
		obj  client.Object
		want session.Presence
	}{
		"no object":           {nil, session.Absent},
		"an object":           {kindstest.Named("web"), session.Present},
		"an object that goes": {deleted, session.Deleting},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := session.Stand(tt.obj); got != tt.want {
				t.Errorf("it is %d, want %d", got, tt.want)
			}
		})
	}
}

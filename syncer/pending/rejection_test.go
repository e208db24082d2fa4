package pending

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtualcluster/virtualcluster/syncer/guard"
)

func TestClassify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	pod := schema.GroupKind{Kind: "Pod"}
	terminating := apierrors.NewForbidden(pods, "web", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}

	tests := map[string]struct {
		err      error
		rejected bool
	}{
		"no error":                {nil, false},
		"invalid":                 {apierrors.NewInvalid(pod, "web", field.ErrorList{field.Required(field.NewPath("spec"), "")}), true},
		"forbidden to the syncer": {apierrors.NewForbidden(pods, "web", errors.New(`User "syncer" cannot create resource "pods"`)), false},
		"forbidden":               {apierrors.NewForbidden(pods, "web", errors.New("exceeded quota")), true},
		"bad request":             {apierrors.NewBadRequest("cannot be decoded"), true},
		"too large":               {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"method not supported":    {apierrors.NewMethodNotSupported(pods, "create"), true},
		"another object's name":   {guard.ErrForeign, true},
		"wrapped":                 {fmt.Errorf("creating: %w", guard.ErrForeign), true},
		"wrapped API error":       {fmt.Errorf("creating: %w", apierrors.NewBadRequest("x")), true},
		"namespace terminating":   {terminating, false},
		"namespace not there":     {guard.ErrNoNamespace, false},
		"conflict":                {apierrors.NewConflict(pods, "web", errors.New("changed")), false},
		"not found":               {apierrors.NewNotFound(pods, "web"), false},
		"already exists":          {apierrors.NewAlreadyExists(pods, "web"), false},
		"server timeout":          {apierrors.NewServerTimeout(pods, "create", 1), false},
		"timeout":                 {apierrors.NewTimeoutError("etcd", 1), false},
		"too many requests":       {apierrors.NewTooManyRequests("later", 1), false},
		"internal error":          {apierrors.NewInternalError(errors.New("boom")), false},
		"service unavailable":     {apierrors.NewServiceUnavailable("down"), false},
		"our credentials failed":  {apierrors.NewUnauthorized("who are you"), false},
		"no answer":               {errors.New("connection refused"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Classify(tt.err)
			var why RejectionError
			if is := errors.As(got, &why); is != tt.rejected {
				t.Errorf("%v is a rejection: %t, want %t", tt.err, is, tt.rejected)
			}
			if !errors.Is(got, tt.err) {
				t.Errorf("%v does not lead to its cause %v", got, tt.err)
			}
			if tells := strings.Contains(fmt.Sprint(got), "docs/admins/custom-resources.md"); tells != LacksRights(tt.err) {
				t.Errorf("%v tells the admin what to do: %t", got, tells)
			}
		})
	}
}

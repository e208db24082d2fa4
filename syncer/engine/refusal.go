package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/validation"
)

// reasonRefused is the reason of the event on an object that does not go down.
const reasonRefused = "SyncRefused"

// maxMessage is the longest message that an event may have (core/v1 validation).
const maxMessage = 1024

// refusal is an error that the tenant has to mend, or the super cluster's admin. Its text becomes an event on the tenant's
// object.
type refusal struct{ error }

// Unwrap is the cause.
func (r refusal) Unwrap() error { return r.error }

// refused makes a refusal of the errors by which the super cluster says that it will not have an object. Others, and those
// that pass by themselves, are none.
func refused(err error) error {
	switch {
	case lacksRights(err):
		return fmt.Errorf("the syncer lacks a right in the super cluster (see docs/admins.md): %w", err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case errors.Is(err, errForeign), apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return refusal{err}
	case errors.As(err, new(*plugins.RejectionError)), errors.As(err, new(*validation.FailureError)):
		return refusal{err}
	}
	return err
}

// lacksRights says whether it is the syncer that the super cluster's authorizer refuses, and not the object. That is the admin's
// to mend and nothing that a tenant should read.
func lacksRights(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), ` is forbidden: User "`)
}

// report tells the tenant why an object does not go down. The same cause counts up one event.
func (s *session) report(ctx context.Context, k *kinds.Kind, key client.ObjectKey, reason string, why error) error {
	obj, err := s.tenantObject(ctx, k, key)
	if err != nil || obj == nil {
		return err
	}
	about, err := reference.GetReference(s.cluster.GetScheme(), obj)
	if err != nil {
		return err
	}
	event := refusalEvent(about, reason, s.identity().Text(why.Error(), key.Namespace), time.Now())
	switch err := s.client.Create(ctx, event); {
	case apierrors.IsAlreadyExists(err):
		return s.countUp(ctx, event)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Nobody will look for it there.
		return nil
	default:
		return err
	}
}

// countUp counts one more of an event that exists.
func (s *session) countUp(ctx context.Context, event *corev1.Event) error {
	was := &corev1.Event{}
	if err := s.cluster.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(event), was); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := was.DeepCopy()
	now.Count++
	now.LastTimestamp = event.LastTimestamp
	return s.client.Patch(ctx, now, client.MergeFrom(was))
}

// refusalEvent is the event on a tenant's object that does not go down. Its name says which object and what reason, so that
// the same reason finds it again.
func refusalEvent(about *corev1.ObjectReference, reason, message string, now time.Time) *corev1.Event {
	message = cut(message, maxMessage)
	sum := sha256.Sum256([]byte(string(about.UID) + message))
	digest := "." + hex.EncodeToString(sum[:8])
	name := strings.TrimRight(cut(about.Name, apivalidation.DNS1123SubdomainMaxLength-len(digest)), "-.") + digest
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: name},
		InvolvedObject:      *about,
		Type:                corev1.EventTypeWarning,
		Reason:              reason,
		Message:             message,
		FirstTimestamp:      metav1.NewTime(now),
		LastTimestamp:       metav1.NewTime(now),
		Count:               1,
		Source:              corev1.EventSource{Component: "vc-syncer"},
		ReportingController: "vc-syncer",
	}
}

// cut is the beginning of a text of at most so many bytes, without the half of a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

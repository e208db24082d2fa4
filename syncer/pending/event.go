package pending

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/reference"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxMessage is the longest message that an event may have (core/v1 validation).
const maxMessage = 1024

// Reporter tells a tenant by events why objects of its are not synced.
type Reporter struct {
	// Client writes the tenant's objects.
	Client client.Client
	// Reader reads them from the tenant's apiserver.
	Reader client.Reader
	// Scheme names their kinds.
	Scheme *runtime.Scheme
}

// Report creates an event about an object. The same cause counts up one event.
func (r Reporter) Report(ctx context.Context, obj client.Object, reason, message string) error {
	about, err := reference.GetReference(r.Scheme, obj)
	if err != nil {
		return err
	}
	event := newEvent(about, reason, message, time.Now())
	switch err := r.Client.Create(ctx, event); {
	case apierrors.IsAlreadyExists(err):
		return r.countUp(ctx, event)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// The namespace is about to disappear with the object.
		return nil
	default:
		return err
	}
}

// countUp counts one more of an event that exists.
func (r Reporter) countUp(ctx context.Context, event *corev1.Event) error {
	was := &corev1.Event{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(event), was); err != nil {
		return client.IgnoreNotFound(err)
	}
	now := was.DeepCopy()
	now.Count++
	now.LastTimestamp = event.LastTimestamp
	return r.Client.Patch(ctx, now, client.MergeFrom(was))
}

// newEvent returns the event on a tenant's object that is pending. Its name is
// that of the object with a digest of the message, so that the same cause
// counts up the same event.
func newEvent(about *corev1.ObjectReference, reason, message string, now time.Time) *corev1.Event {
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

// cut returns the beginning of a text, of at most this number of bytes and
// without a part of a character at its end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

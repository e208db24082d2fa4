package sharedcrds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/vcstatus"
)

// owner is the field manager of the condition SharedCRDs.
const owner = client.FieldOwner("vc-syncer-shared-crds")

// longest is the maximum length of the message about one CRD in bytes: all have
// to fit into the message of a condition.
const longest = 800

// soon is when to observe again what an apiserver of a tenant is doing.
const soon = time.Second

// maxMessage is the maximum length of the condition's message.
const maxMessage = 16 << 10

// outcome is that of the steps of one CRD. The zero value is that of a CRD that
// is as it should be.
type outcome struct {
	reason, message string
	// again is when to reconcile again; zero if nothing is under way.
	again time.Duration
	// err is retried with backoff.
	err error
}

// errLeft is why a recalled CRD is not deleted.
var errLeft = errors.New("it is recalled, and not served any more, since the tenant has objects of it, which are kept")

// outcome returns the outcome of an error; nil is none.
func (of *subject) outcome(err error) outcome {
	if err == nil {
		return outcome{}
	}
	o := outcome{message: of.name + ": " + vcstatus.Printable(vcstatus.Truncate(err.Error(), longest))}
	switch {
	case errors.As(err, &conflict{}):
		o.reason = tenancyv1alpha1.ReasonConflict
	case errors.Is(err, errLeft):
		o.reason = tenancyv1alpha1.ReasonObjectsLeft
	case errors.Is(err, errOutdated):
		o.reason, o.again = tenancyv1alpha1.ReasonRetrying, soon
	case apierrors.IsConflict(err):
		// The tenant has changed the CRD meanwhile.
		o.reason, o.again = tenancyv1alpha1.ReasonRetrying, soon
	default:
		o.reason, o.err = tenancyv1alpha1.ReasonRetrying, err
	}
	return o
}

// stays returns what there is to say of a CRD of which no step is left.
func (s *Syncer) stays(ctx context.Context, of *subject, o observation, last step) error {
	if last == unserve {
		return fmt.Errorf("%w; to delete them, annotate the VirtualCluster (see docs/shared-crds.md) with %s/%s", errLeft, of.name, o.found.UID)
	}
	if last == repair {
		for _, c := range o.found.Status.Conditions {
			if c.Type == apiextensionsv1.NamesAccepted && c.Status == apiextensionsv1.ConditionFalse {
				return s.tell(ctx, of, o, conflict{errors.New("the tenant's apiserver does not accept its names: " + c.Message)})
			}
		}
	}
	delete(s.told, of.name)
	return nil
}

// tell tells the tenant of a conflict by an event, once, and returns it.
func (s *Syncer) tell(ctx context.Context, of *subject, o observation, err error) error {
	if !errors.As(err, &conflict{}) || s.told[of.name] == err.Error() {
		return err
	}
	message := "The platform's CustomResourceDefinition of this name cannot replace this one: " + err.Error()
	if failed := s.report(ctx, o.found, tenancyv1alpha1.ReasonConflict, message); failed != nil {
		return errors.Join(err, failed)
	}
	s.told[of.name] = err.Error()
	return err
}

// outcomes are those of all CRDs of a tenant.
type outcomes []outcome

// again returns when to reconcile again; zero if nothing is under way.
func (all outcomes) again() time.Duration {
	var soonest time.Duration
	for _, o := range all {
		if o.again > 0 && (soonest == 0 || o.again < soonest) {
			soonest = o.again
		}
	}
	return soonest
}

// condition returns the condition of a tenant; nil if nothing is shared with
// it.
func (all outcomes) condition(generation int64) *metav1.Condition {
	if len(all) == 0 {
		return nil
	}
	c := &metav1.Condition{
		Type: tenancyv1alpha1.ConditionSharedCRDs, Status: metav1.ConditionTrue, Reason: tenancyv1alpha1.ReasonShared,
		Message: "The tenant has the CRDs that are shared with it", ObservedGeneration: generation,
	}
	var messages []string
	// The order is that of severity.
	for _, reason := range []string{
		tenancyv1alpha1.ReasonConflict, tenancyv1alpha1.ReasonTooManyCRDs, tenancyv1alpha1.ReasonObjectsLeft, tenancyv1alpha1.ReasonRetrying,
	} {
		for _, o := range all {
			if o.reason != reason {
				continue
			}
			if len(messages) == 0 {
				c.Status, c.Reason = metav1.ConditionFalse, reason
			}
			messages = append(messages, o.message)
		}
	}
	if len(messages) > 0 {
		c.Message = vcstatus.Truncate(strings.Join(messages, "; "), maxMessage)
	}
	return c
}

// conclude writes the condition of the tenant if it differs.
func (s *Syncer) conclude(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, all outcomes) error {
	wanted, differ := vcstatus.Merge(vc, map[string]*metav1.Condition{tenancyv1alpha1.ConditionSharedCRDs: all.condition(vc.Generation)})
	if !differ {
		return nil
	}
	return vcstatus.ApplyConditions(ctx, s.shared.super.GetClient(), vc, owner, slices.Clip(wanted)...)
}

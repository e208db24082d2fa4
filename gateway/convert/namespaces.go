package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/virtualcluster/virtualcluster/gateway/convert/fence"
	"github.com/virtualcluster/virtualcluster/internal/converted"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// find reports whether a namespace exists, and is the tenant's. The index may
// lag: a namespace that it lacks is read, and so is one that is being deleted.
func (c *call) find(ctx context.Context, super, tenant string) (bool, error) {
	if c.Namespaces.Exists(c.Tenant, super) {
		return true, nil
	}
	var found metav1.PartialObjectMetadata
	code, err := c.send(ctx, c.Super, http.MethodGet, "/api/v1/namespaces/"+super, nil, &found)
	switch {
	case err != nil:
		return false, err
	case code == http.StatusNotFound:
		return false, nil
	case code != http.StatusOK:
		return false, fmt.Errorf("read a namespace of the tenant: the super cluster responded %d", code)
	case found.Labels[names.Converted] != c.Tenant || found.Annotations[names.Namespace] != tenant:
		return false, apierrors.NewForbidden(namespacesResource, tenant, errTaken)
	}
	c.terminating = found.DeletionTimestamp != nil
	c.Namespaces.Set(&found)
	return true, nil
}

// admit isolates the pods of a namespace that was created, permits it to the
// tenant's service account, and adds it to the index.
func (c *call) admit(ctx context.Context, namespace metav1.Object) error {
	name := namespace.GetName()
	err := c.make(ctx, "/apis/networking.k8s.io/v1/namespaces/"+name+"/networkpolicies", converted.Isolation(name, c.Labels))
	if err == nil {
		err = c.make(ctx, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+name+"/rolebindings", fence.Binding(c.Tenant, name))
	}
	if err == nil {
		err = c.waitForPermission(ctx, &authorizationv1.ResourceAttributes{Namespace: name, Verb: verbCreate, Resource: "pods"})
	}
	if err != nil {
		return fmt.Errorf("permit the tenant its new namespace: %w", err)
	}
	c.Namespaces.Set(namespace)
	return nil
}

// make creates an object of the platform, unless it exists.
func (c *call) make(ctx context.Context, path string, object any) error {
	code, err := c.send(ctx, c.Super, http.MethodPost, path, object, nil)
	if err == nil && code != http.StatusCreated && code != http.StatusConflict {
		err = fmt.Errorf("the super cluster responded %d", code)
	}
	return err
}

// An apiserver authorizes by a cache, in which a new RoleBinding appears within
// milliseconds. Longer than permissionTimeout, a request does not wait.
const (
	permissionFirst, permissionMost = 10 * time.Millisecond, 500 * time.Millisecond
	permissionTimeout               = 20 * time.Second
)

// waitForPermission waits until the tenant's service account may do what the next
// request of the tenant is likely to be.
func (c *call) waitForPermission(ctx context.Context, what *authorizationv1.ResourceAttributes) error {
	asked := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
	const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	ctx, cancel := context.WithTimeout(ctx, permissionTimeout)
	defer cancel()
	backoff := wait.Backoff{Duration: permissionFirst, Factor: 1.5, Jitter: 0.1, Steps: 16, Cap: permissionMost}
	return backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		var review authorizationv1.SelfSubjectAccessReview
		_, err := c.send(ctx, c.Fenced, http.MethodPost, path, asked, &review)
		return review.Status.Allowed, err
	})
}

// send sends a request that the gateway makes itself.
func (h *Handler) send(ctx context.Context, by http.RoundTripper, method, path string, body, into any) (int, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, method, h.urlOf(path).String(), bytes.NewReader(data)) //nolint:gosec // of the super cluster
	if err != nil {
		return 0, err
	}
	r.Header.Set("Accept", jsonType)
	r.Header.Set("Content-Type", jsonType)
	return exchange(by, r, into)
}

// exchange sends a request, and reads the document of a response that is no
// error.
func exchange(by http.RoundTripper, r *http.Request, into any) (int, error) {
	response, err := by.RoundTrip(r)
	if err != nil {
		return 0, errSilent
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, errSilent
	}
	if into != nil && response.StatusCode < http.StatusMultipleChoices {
		err = json.Unmarshal(answer, into)
	}
	return response.StatusCode, err
}

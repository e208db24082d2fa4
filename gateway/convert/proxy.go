package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/gateway/forward"
)

// isProxy reports whether the request is for a server in a pod.
func (c *call) isProxy() bool {
	return c.info.Subresource != "" && c.kind.Subresources[c.info.Subresource].Form == kinds.Proxy
}

// isBelow reports whether a path is another one, or below it.
func isBelow(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '/')
}

// proxy serves a request for a server in a pod, by the proxy of the super
// cluster's apiserver.
func (c *call) proxy(w http.ResponseWriter, r *http.Request) error {
	target, err := c.proxyTarget(r.URL)
	if err != nil {
		return err
	}
	if err := c.checkRuns(r.Context()); err != nil {
		return err
	}
	transport := c.Fenced
	if httpstream.IsUpgradeRequest(r) {
		transport = c.FencedUpgrades
	}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host = target, ""
			dropCredentials(p.Out.Header)
			p.Out.Header.Del("Accept-Encoding") // pages are converted
		},
		Transport:      transport,
		FlushInterval:  -1,
		ErrorLog:       log.New(io.Discard, "", 0),
		ModifyResponse: c.convertProxied,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if !errors.Is(err, errPage) {
				err = errSilent
			}
			responsewriters.ErrorNegotiated(apiError(err), scheme.Codecs, schema.GroupVersion{}, w, r)
		},
	}
	proxy.ServeHTTP(w, r)
	return nil
}

// proxyTarget returns the URL in the super cluster. What follows the path of the
// subresource is the server's.
func (c *call) proxyTarget(asked *url.URL) (*url.URL, error) {
	own := c.pathOf(c.version(), c.info.Namespace, c.name, c.info.Subresource)
	rest := strings.TrimPrefix(asked.Path, own)
	steps := strings.Split(asked.EscapedPath(), "/")
	rawRest := strings.Join(append([]string{""}, steps[min(len(steps), 1+strings.Count(own, "/")):]...), "/")
	unescaped, err := url.PathUnescape(rawRest)
	if err != nil || unescaped != rest {
		return nil, apierrors.NewBadRequest("the path of the resource has slashes that are escaped")
	}
	for step := range strings.SplitSeq(rest, "/") {
		if step == "." || step == ".." {
			return nil, apierrors.NewBadRequest("the path has a step that leads to another one")
		}
	}
	target := c.target(nil)
	target.Path, target.RawPath = target.Path+rest, target.EscapedPath()+rawRest
	target.RawQuery = asked.RawQuery
	return target, nil
}

// checkRuns returns an error for a pod that has ended: the super cluster may have
// given its address to another tenant's.
func (c *call) checkRuns(ctx context.Context) error {
	if c.kind.Resource != "pods" {
		return nil
	}
	_, name, _, ok := utilnet.SplitSchemeNamePort(c.name)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid pod request %q", c.name))
	}
	pod := &corev1.Pod{}
	code, err := c.send(ctx, c.Fenced, http.MethodGet, "/api/v1/namespaces/"+c.namespace+"/pods/"+url.PathEscape(name), nil, pod)
	switch {
	case err != nil:
		return err
	case code == http.StatusNotFound, code == http.StatusForbidden: // which is in the last moment of a namespace
		return apierrors.NewNotFound(c.kind.GroupResource(), name)
	case code != http.StatusOK:
		return fmt.Errorf("read a pod: the super cluster responded %d", code)
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return apierrors.NewServiceUnavailable(fmt.Sprintf("pod %q has ended", name))
	}
	return nil
}

// dropCredentials removes all by which a client says who it is.
func dropCredentials(header http.Header) {
	for name := range header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			delete(header, name)
		}
	}
	forward.DropTokens(header)
}

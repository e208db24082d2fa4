package vnagent

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// call is one of the kubelet's calls, by the first element of its path.
type call string

const (
	callLogs        call = "containerLogs"
	callExec        call = "exec"
	callAttach      call = "attach"
	callPortForward call = "portForward"
	// callMetrics is a request for the resource metrics API, which is not a
	// call of a kubelet.
	callMetrics call = "metrics"
	// callOther stands for all that is not answered.
	callOther call = "other"
)

// calls are those that are answered.
var calls = []call{callLogs, callExec, callAttach, callPortForward}

// subresource is the subresource of a pod by which the super cluster's
// apiserver offers the same.
func (c call) subresource() string {
	if c == callLogs {
		return "log"
	}
	return strings.ToLower(string(c))
}

// allows reports whether the call can be made by a method. Streams begin with
// the method that the client's protocol wants.
func (c call) allows(method string) bool {
	return method == http.MethodGet || method == http.MethodPost && c != callLogs
}

// target is what a request is about, in the tenant's names.
type target struct {
	call           call
	namespace, pod string
	// container is empty for a call that is about the whole pod.
	container string
	// uid is the pod's in the tenant; empty if any pod of the name will do.
	uid types.UID
}

// parseTarget reads the path of a request. It takes the path as it came, so
// that nothing in it stands for something else, and only what is made of names:
// no element can lead out of the path that is built of it.
func parseTarget(u *url.URL) (target, bool) {
	elements := strings.Split(u.EscapedPath(), "/")
	if len(elements) < 2 || elements[0] != "" || slices.Contains(elements[2:], "") {
		return target{}, false
	}
	t := target{call: call(elements[1])}
	fields := fieldsOf(&t, len(elements)-2)
	if fields == nil {
		return target{}, false
	}
	for i, element := range elements[2:] {
		*fields[i] = element
	}
	return t, t.isNamed()
}

// fieldsOf are where the elements of the path behind the call belong, by how
// many there are; nil if no such path exists.
func fieldsOf(t *target, count int) []*string {
	pod := []*string{&t.namespace, &t.pod}
	var container []*string
	if t.call != callPortForward {
		container = []*string{&t.container}
	}
	short := slices.Concat(pod, container)
	long := slices.Concat(pod, []*string{(*string)(&t.uid)}, container)
	switch {
	case !slices.Contains(calls, t.call):
		return nil
	case count == len(short):
		return short
	case count == len(long) && t.call != callLogs:
		return long
	default:
		return nil
	}
}

// isNamed reports whether all parts of the target can be what they stand for.
func (t target) isNamed() bool {
	return isLabel(t.namespace) && len(validation.IsDNS1123Subdomain(t.pod)) == 0 &&
		(t.container == "" || isLabel(t.container)) && (t.uid == "" || isLabel(string(t.uid)))
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

package vnagent

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// logParameters are those of logs that the kubelet and the apiserver call the
// same. Whose connection to the node is trusted is not the tenant's to say.
var logParameters = []string{"follow", "previous", "timestamps", "sinceSeconds", "sinceTime", "tailLines", "limitBytes", "stream"}

// query turns the kubelet's parameters of a call into those of the pod's
// subresource. Unknown parameters are left out.
func (t target) query(asked url.Values) (url.Values, error) {
	on := func(parameter string) bool { return asked.Get(parameter) == "1" }
	switch t.call {
	case callLogs:
		query := url.Values{"container": {t.container}}
		for _, parameter := range logParameters {
			if values, ok := asked[parameter]; ok {
				query[parameter] = values
			}
		}
		return query, nil
	case callExec:
		return scheme.ParameterCodec.EncodeParameters(&corev1.PodExecOptions{
			Stdin: on(corev1.ExecStdinParam), Stdout: on(corev1.ExecStdoutParam), Stderr: on(corev1.ExecStderrParam),
			TTY: on(corev1.ExecTTYParam), Container: t.container, Command: asked[corev1.ExecCommandParam],
		}, corev1.SchemeGroupVersion)
	case callAttach:
		return scheme.ParameterCodec.EncodeParameters(&corev1.PodAttachOptions{
			Stdin: on(corev1.ExecStdinParam), Stdout: on(corev1.ExecStdoutParam), Stderr: on(corev1.ExecStderrParam),
			TTY: on(corev1.ExecTTYParam), Container: t.container,
		}, corev1.SchemeGroupVersion)
	default:
		ports, err := parsePorts(asked[corev1.PortHeader])
		if err != nil {
			return nil, err
		}
		return scheme.ParameterCodec.EncodeParameters(&corev1.PodPortForwardOptions{Ports: ports}, corev1.SchemeGroupVersion)
	}
}

// parsePorts reads ports, several of which may stand in one parameter.
func parsePorts(parameters []string) ([]int32, error) {
	var ports []int32
	for _, parameter := range parameters {
		for text := range strings.SplitSeq(parameter, ",") {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil || port == 0 {
				return nil, fmt.Errorf("%q is no port", text)
			}
			ports = append(ports, int32(port))
		}
	}
	return ports, nil
}

package hosted

import (
	"runtime"
	"strings"
)

// ContainExit returns a function for klog.OsExit, by which a part of Kubernetes
// ends the process when it gives up. While a control plane starts, only that
// start ends: a tenant can have it fail, as by a policy that forbids what
// kube-apiserver writes at its start. Otherwise exit is called.
//
// Set it before [Start], once in a process.
func ContainExit(exit func(code int)) func(code int) {
	return func(code int) {
		switch startOnStack() {
		case inHook: // the server does not become healthy without it, and the start fails in its time
			runtime.Goexit()
		case inBuild:
			panic("a part of Kubernetes gave up; its log tells why") //nolint:forbidigo // What called klog.Fatal takes no error; serve recovers.
		case elsewhere:
			exit(code)
		}
	}
}

// start is which part of a control plane's start runs.
type start int

const (
	elsewhere start = iota
	// inHook is a goroutine of kube-apiserver that runs one start hook.
	inHook
	// inBuild is the goroutine that starts the control plane, which recovers.
	inBuild
)

const (
	hookFunction  = "k8s.io/apiserver/pkg/server.runPostStartHook"
	serveFunction = "/hosted.(*ControlPlane).serve"
)

// startOnStack returns which part of a start has called the caller's caller.
func startOnStack() start {
	const deep = 128
	callers := make([]uintptr, deep)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == hookFunction:
			return inHook
		case strings.HasSuffix(frame.Function, serveFunction):
			return inBuild
		case !more:
			return elsewhere
		}
	}
}

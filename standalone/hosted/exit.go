package hosted

import (
	"runtime"
	"strings"
)

// ContainExit returns a replacement for klog.OsExit, which parts of Kubernetes
// call to exit the process when they give up. During the start of a control
// plane, only that start fails: a tenant can cause it, for example with a
// policy that forbids writes of kube-apiserver's start hooks. Otherwise it
// calls exit.
//
// Set it before [Start], once in a process.
func ContainExit(exit func(code int)) func(code int) {
	return func(code int) {
		switch startOnStack() {
		case inHook: // the server does not become healthy without it, and the start times out
			runtime.Goexit()
		case inBuild:
			panic("a part of Kubernetes gave up; see its log") //nolint:forbidigo // What called klog.Fatal takes no error; serve recovers.
		case elsewhere:
			exit(code)
		}
	}
}

// start is a phase of a control plane's start.
type start int

const (
	elsewhere start = iota
	// inHook means a goroutine of kube-apiserver that runs one start hook.
	inHook
	// inBuild means the goroutine that starts the control plane, or that runs one
	// of its controllers by need. Both recover.
	inBuild
)

const (
	hookFunction  = "k8s.io/apiserver/pkg/server.runPostStartHook"
	serveFunction = "/hosted.(*ControlPlane).serve"
	workFunction  = "/controllers.(*ByNeed).work"
)

// startOnStack returns the phase of a start that is on the caller's stack.
func startOnStack() start {
	const deep = 128
	callers := make([]uintptr, deep)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == hookFunction:
			return inHook
		case strings.HasSuffix(frame.Function, serveFunction), strings.HasSuffix(frame.Function, workFunction):
			return inBuild
		case !more:
			return elsewhere
		}
	}
}

package hosted_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// TestAStartHookThatFailsDoesNotEndTheProcess: upstream ends the process, and
// with it all tenants.
func TestAStartHookThatFailsDoesNotEndTheProcess(t *testing.T) {
	g := NewWithT(t)
	config := genericapiserver.NewConfig(scheme.Codecs)
	config.LoopbackClientConfig = &rest.Config{}
	config.ExternalAddress = "localhost:443"
	config.EffectiveVersion = compatibility.NewEffectiveVersionFromString("1.36", "", "")
	exited := make(chan int, 1)
	exit := klog.OsExit
	klog.OsExit = hosted.ContainExit(func(code int) { exited <- code })
	t.Cleanup(func() { klog.OsExit = exit })
	ran := make(chan struct{})
	config.AddPostStartHookOrDie("fails", func(genericapiserver.PostStartHookContext) error {
		defer close(ran)
		return errors.New("a tenant has forbidden it")
	})
	server, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	g.Expect(err).NotTo(HaveOccurred())
	server.RunPostStartHooks(t.Context())
	g.Eventually(ran, soon).Should(BeClosed())
	g.Consistently(exited, "300ms").ShouldNot(Receive())
}

// TestExitElsewhere: what gives up and is no part of a start ends the process as ever.
func TestExitElsewhere(t *testing.T) {
	var code int
	hosted.ContainExit(func(c int) { code = c })(255)
	if code != 255 {
		t.Errorf("exit was called with %d, want 255", code)
	}
}

package hosted_test

import (
	"testing"
	"time"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

func TestFirst(t *testing.T) {
	for _, n := range []string{"a", "b", "c"} {
		begin := time.Now()
		p := runReady(t, shared, hosted.Spec{Name: n})
		t.Log("ready", time.Since(begin))
		begin = time.Now()
		stop(t, p)
		t.Log("stopped", time.Since(begin))
	}
}

package local

import "testing"

func TestInnermost(t *testing.T) {
	const stacks = `goroutine 1 [running]:
github.com/virtualcluster/virtualcluster/test/local.running()
	stuck.go:20 +0x1d

goroutine 2 [select]:
net/http.(*Transport).roundTrip(0xc000000000, 0xc000000001)
	transport.go:700 +0x7a5
github.com/virtualcluster/virtualcluster/syncer/engine.(*Engine).Reconcile(0xc000000002, {0x1, 0x2}, {{0x3, 0x4}, ...})
	engine.go:270 +0x1a0
github.com/virtualcluster/virtualcluster/syncer/app.Run({0x1, 0x2})
	app.go:110 +0x52
created by sigs.k8s.io/controller-runtime/pkg/manager in goroutine 1
	runnable_group.go:260 +0x3a

goroutine 3 [chan receive]:
github.com/virtualcluster/virtualcluster/syncer/app.Run({0x1, 0x2})
	app.go:110 +0x52`
	const want = "syncer/app.Run syncer/engine.(*Engine).Reconcile"
	if got := innermost(stacks); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

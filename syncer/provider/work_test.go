package provider

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestWorkEndsWithTheLast(t *testing.T) {
	w := newWork()
	for range 2 {
		if !w.begin() {
			t.Fatal("nothing begins")
		}
	}
	done := w.end()
	if w.begin() {
		t.Error("work begins after the end")
	}
	for range 2 {
		select {
		case <-done:
			t.Fatal("it is done too early")
		default:
		}
		w.finish()
	}
	<-done
	<-w.end()
}

func TestNothingIsDoneAfterTheEndOfWork(t *testing.T) {
	w := newWork()
	var running atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for w.begin() {
				running.Add(1)
				running.Add(-1)
				w.finish()
			}
		})
	}
	<-w.end()
	if n := running.Load(); n != 0 {
		t.Errorf("%d still run", n)
	}
	workers.Wait()
}

package hosted

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTurnsGoToThoseWithFewestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTurns(1)
		end, err := all.take(t.Context(), 9)
		if err != nil {
			t.Fatal(err)
		}
		var order []int
		for _, failures := range []int{3, 0, 1, 0} {
			go func() {
				end, err := all.take(t.Context(), failures)
				if err == nil {
					order = append(order, failures)
					end()
				}
			}()
			synctest.Wait()
		}
		end()
		synctest.Wait()
		if want := []int{0, 0, 1, 3}; !slices.Equal(order, want) {
			t.Errorf("got %v, want %v", order, want)
		}
	})
}

func TestATurnEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newTurns(1)
		end, err := all.take(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		again, err := all.take(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited != turnTimeout {
			t.Errorf("waited %s, want %s", waited, turnTimeout)
		}
		end() // of a turn that has ended: there is none to release
		again()
		if all.free != 1 {
			t.Errorf("%d turns are free, want 1", all.free)
		}
	})
}

func TestATurnIsLeftByThoseWhoStop(t *testing.T) {
	all := newTurns(1)
	end, err := all.take(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := all.take(stopped, 0); err == nil {
		t.Error("took a turn that another has")
	}
	end()
	if _, err := all.take(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

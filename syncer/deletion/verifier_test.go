package deletion

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestVerifierAsksAgainForEach checks that an answer from before a call does
// not count for it.
func TestVerifierAsksAgainForEach(t *testing.T) {
	v := NewVerifier()
	answers := []error{nil, errors.New("another"), nil}
	asked := 0
	for _, want := range answers {
		got := v.Verify(t.Context(), func(context.Context) error {
			asked++
			return answers[asked-1]
		})
		if !errors.Is(got, want) {
			t.Errorf("answer %d is %v, want %v", asked, got, want)
		}
	}
	if asked != len(answers) {
		t.Errorf("asked %d times", asked)
	}
}

// TestVerifierSharesTheNextAnswer checks that callers during a check do not get
// its answer, but share the next.
func TestVerifierSharesTheNextAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := NewVerifier()
		var asked, early atomic.Int32
		ask := func(context.Context) error {
			number := asked.Add(1)
			time.Sleep(time.Second)
			if number == 1 {
				return errors.New("the first answer")
			}
			return nil
		}
		go func() { _ = v.Verify(t.Context(), ask) }()
		synctest.Wait()
		for range 20 {
			go func() {
				if v.Verify(t.Context(), ask) != nil {
					early.Add(1)
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if early.Load() != 0 {
			t.Errorf("%d got the answer to a question that was put before they came", early.Load())
		}
		if asked.Load() != 2 {
			t.Errorf("asked %d times, want 2", asked.Load())
		}
	})
}

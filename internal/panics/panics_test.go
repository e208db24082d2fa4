package panics

import (
	"errors"
	"strings"
	"testing"
)

func TestRecover(t *testing.T) {
	call := func(f func()) (err error) {
		defer Recover(&err)
		f()
		return nil
	}
	if err := call(func() {}); err != nil {
		t.Errorf("without a panic: %v", err)
	}
	err := call(func() { panic("no disk") })
	if !errors.Is(err, ErrPanic) || !strings.Contains(err.Error(), "no disk") || !strings.Contains(err.Error(), "panics_test.go") {
		t.Errorf("a panic: %v", err)
	}
}

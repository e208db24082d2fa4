package requests

import "context"

// Timer times requests.
type Timer interface {
	// Begin notes that a request to a side begins. The function that it returns notes the end: answered, with all of the answer
	// read, or failed.
	Begin(side string) (end func(answered bool))
}

// timerKey is where a context has its timer.
type timerKey struct{}

// Timed returns a context whose requests are timed, of those that a [Counter] counts. Watches are not.
func Timed(ctx context.Context, t Timer) context.Context {
	return context.WithValue(ctx, timerKey{}, t)
}

// begin notes that a request begins, if it is timed.
func begin(ctx context.Context, side string) (end func(answered bool)) {
	if t, ok := ctx.Value(timerKey{}).(Timer); ok {
		return t.Begin(side)
	}
	return nil
}

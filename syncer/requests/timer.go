package requests

import "context"

// Timer times requests.
type Timer interface {
	// Begin is called when a request to a side begins. It returns a function to
	// call at the end: answered is set if the complete answer was read, and not
	// if the request failed.
	Begin(side string) (end func(answered bool))
}

// timerKey is the key of the timer in a context.
type timerKey struct{}

// Timed returns a context whose requests are timed, as far as a [Counter]
// counts them. Watches are not timed.
func Timed(ctx context.Context, t Timer) context.Context {
	return context.WithValue(ctx, timerKey{}, t)
}

// begin calls the timer of a context, if it has one.
func begin(ctx context.Context, side string) (end func(answered bool)) {
	if t, ok := ctx.Value(timerKey{}).(Timer); ok {
		return t.Begin(side)
	}
	return nil
}

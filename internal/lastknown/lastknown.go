// Package lastknown reads what informers report about deleted objects.
package lastknown

import "k8s.io/client-go/tools/cache"

// Of returns the last known state of a deleted object as a T, also if the
// informer has missed its deletion; ok is false if it is no T.
func Of[T any](deleted any) (last T, ok bool) {
	if missed, unknown := deleted.(cache.DeletedFinalStateUnknown); unknown {
		deleted = missed.Obj
	}
	last, ok = deleted.(T)
	return last, ok
}

package kinds

import "sigs.k8s.io/controller-runtime/pkg/client"

// The functions below erase the type of a hook's objects. Nil hooks stay nil.

// reads erases a hook that reads one object.
func reads[T client.Object, R any](hook func(T) R) func(client.Object) R {
	if hook == nil {
		return nil
	}
	return func(obj client.Object) R { return hook(obj.(T)) }
}

// decides erases a hook that decides about one object, given another value.
func decides[V any, T client.Object](hook func(V, T) bool) func(V, client.Object) bool {
	if hook == nil {
		return nil
	}
	return func(v V, obj client.Object) bool { return hook(v, obj.(T)) }
}

// checks erases a hook that may reject one object.
func checks[T client.Object](hook func(View, T) error) func(View, client.Object) error {
	if hook == nil {
		return nil
	}
	return func(v View, obj client.Object) error { return hook(v, obj.(T)) }
}

// compares erases a hook that compares two objects.
func compares[T client.Object](hook func(a, b T) bool) func(a, b client.Object) bool {
	if hook == nil {
		return nil
	}
	return func(a, b client.Object) bool { return hook(a.(T), b.(T)) }
}

// changes erases a hook that writes to its first object.
func changes[T client.Object](hook func(to, from T)) func(to, from client.Object) {
	if hook == nil {
		return nil
	}
	return func(to, from client.Object) { hook(to.(T), from.(T)) }
}

// changesViewed erases a hook that writes to its first object, given a view.
func changesViewed[T client.Object](hook func(v View, to, from T)) func(v View, to, from client.Object) {
	if hook == nil {
		return nil
	}
	return func(v View, to, from client.Object) { hook(v, to.(T), from.(T)) }
}

// or returns a hook of one argument, or a default for nil.
func or[A, R any](hook, otherwise func(A) R) func(A) R {
	if hook == nil {
		return otherwise
	}
	return hook
}

// or2 returns a hook of two arguments, or a default for nil.
func or2[A, B, R any](hook, otherwise func(A, B) R) func(A, B) R {
	if hook == nil {
		return otherwise
	}
	return hook
}

// eraseEach erases each element of a list.
func eraseEach[T, E any](typed []T, erase func(T) E) []E {
	if typed == nil {
		return nil
	}
	erased := make([]E, len(typed))
	for i, one := range typed {
		erased[i] = erase(one)
	}
	return erased
}

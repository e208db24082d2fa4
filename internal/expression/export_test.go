package expression

// Parses reports whether a source has the syntax of an expression.
func Parses(source string) bool {
	_, ok := parse(source)
	return ok
}

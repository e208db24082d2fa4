package nesting

import (
	"bytes"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// textField is the only field of a quantity.
	textField = 1
	// longestQuantity is how many characters a quantity may have. The time to parse
	// one grows with the square of its length.
	longestQuantity = 100
	// longestExponent is how many digits its exponent may have. Upstream computes a
	// power of ten from it: with seven digits, for two seconds. Values beyond 2^63
	// and below 10^-9 are cut off.
	longestExponent = 3
)

// checkQuantity checks a quantity. Its decoder, which is not a generated one, ends
// in a panic for a length that is negative.
func checkQuantity(quantity []byte) error {
	return readFields(quantity, textField, func(_ int32, text []byte) error {
		if !isCheapQuantity(text) {
			return apierrors.NewBadRequest("a quantity is longer than Kubernetes can use: write it with fewer digits")
		}
		return nil
	})
}

// isCheapQuantity reports whether the text of a quantity takes no long time to parse.
func isCheapQuantity(text []byte) bool {
	if len(text) > longestQuantity {
		return false
	}
	i := bytes.IndexAny(text, "eE")
	return i < 0 || len(bytes.TrimLeft(text[i+1:], "+-0")) <= longestExponent
}

package v1alpha1

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// UnmarshalJSON reads a limit, which may be written as a number.
func (l *Limit) UnmarshalJSON(data []byte) error {
	var number json.Number
	if json.Unmarshal(data, &number) == nil {
		*l = Limit(number)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a limit is a number or a text, and not %s", data)
	}
	*l = Limit(text)
	return nil
}

// Quantity is the limit as a quantity. A limit that the API server has accepted
// always is one.
func (l Limit) Quantity() (resource.Quantity, error) {
	q, err := resource.ParseQuantity(string(l))
	if err == nil && q.Sign() < 0 {
		err = fmt.Errorf("limit %s is negative", l)
	}
	return q, err
}

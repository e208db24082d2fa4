// Package compiled bounds what an object of a converted tenant costs the super
// cluster, which compiles the expressions in it and parses its paths. That cannot
// be stopped, or ends the process.
package compiled

import (
	"encoding/json"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/gateway/convert/kinds"
	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// longestPath is the length of a JSON path, in bytes. The parser of paths calls
// itself for each part, until the stack overflows.
const longestPath = 4096

// Check returns which limit a CustomResourceDefinition or a claim of devices exceeds;
// nil for an object of another kind.
func Check(kind kinds.Kind, object document.Object) error {
	if !kind.IsCRD() && !IsDevices(kind) {
		return nil
	}
	var c checker
	c.visit(object["spec"])
	return c.exceeded()
}

// IsDevices reports whether objects of a kind select devices by expressions.
func IsDevices(kind kinds.Kind) bool { return kind.Group == resourcev1.GroupName }

// errMoves is a JSON patch that makes an expression of something else.
var errMoves = errors.New("a JSON patch of devices cannot move or copy: add the value instead")

// CheckPatch returns which limit a JSON patch of a claim of devices exceeds, as it
// is sent to the super cluster. Each text in it can be an expression.
func CheckPatch(data []byte) error {
	var patch []struct {
		From  *string `json:"from"`
		Value any     `json:"value"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return err
	}
	var c checker
	for _, operation := range patch {
		if operation.From != nil {
			return errMoves
		}
		c.addTexts(operation.Value)
	}
	return c.exceeded()
}

// checker reads one object.
type checker struct {
	work expression.Estimate
	// longest is the length of the longest JSON path.
	longest int
}

// exceeded returns which limit is exceeded.
func (c *checker) exceeded() error {
	switch work := c.work.Work(); {
	case c.longest > longestPath:
		return fmt.Errorf("a jsonPath has %d bytes, and the limit is %d: use a shorter one", c.longest, longestPath)
	case work > expression.MaxWork:
		return fmt.Errorf("to compile its expressions would be about %d times as much work as it may be: write fewer or simpler ones",
			work/expression.MaxWork+1)
	}
	return nil
}

// visit reads a part of an object, and returns how many parts it consists of.
func (c *checker) visit(part any) (parts int) {
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			parts += c.visit(element)
		}
	case document.Object:
		parts = 1
		for _, field := range part {
			parts += c.visit(field)
		}
		c.read(part, parts)
	}
	return parts
}

// read reads the fields of a part that is an object. In a definition, these may
// also be properties of such names.
func (c *checker) read(object document.Object, parts int) {
	if path, ok := object["jsonPath"].(string); ok {
		c.longest = max(c.longest, len(path))
	}
	if pattern, ok := object["pattern"].(string); ok {
		c.work.AddPattern(pattern)
	}
	if selector, ok := object["cel"].(document.Object); ok {
		c.add(selector, "expression")
	}
	if rules, ok := object["x-kubernetes-validations"].([]any); ok {
		c.work.AddTypes(parts)
		for _, each := range rules {
			rule, _ := each.(document.Object)
			c.add(rule, "rule")
			c.add(rule, "messageExpression")
		}
	}
}

// add adds the expression in a field, if there is one.
func (c *checker) add(object document.Object, field string) {
	if source, ok := object[field].(string); ok && source != "" {
		c.work.Add(source)
	}
}

// addTexts adds each text of a value as an expression.
func (c *checker) addTexts(value any) {
	switch value := value.(type) {
	case string:
		c.work.Add(value)
	case []any:
		for _, element := range value {
			c.addTexts(element)
		}
	case document.Object:
		for _, field := range value {
			c.addTexts(field)
		}
	}
}

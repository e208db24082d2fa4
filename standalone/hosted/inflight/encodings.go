package inflight

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	// deepest is the depth of messages that are counted; no type of Kubernetes
	// is as deep except for schemas, which are limited by their length.
	deepest = 32
	// bitFields is the number of fields of a message whose repetition is seen.
	// Fields with higher numbers always count.
	bitFields = 64
)

// yamlElements returns an upper bound of the elements of YAML. Most clients
// that send it send JSON, which is YAML.
func yamlElements(data []byte) int {
	if json.Valid(data) {
		return jsonElements(data)
	}
	// An alias repeats its anchor, which upstream limits, but not to what a
	// request may have.
	if bytes.ContainsRune(data, '&') && bytes.ContainsRune(data, '*') {
		return mostElements
	}
	count := 0
	for _, c := range data {
		switch c {
		case '\n', ',', '{', '[':
			count++
		}
	}
	return count
}

// protobufElements counts the repetitions of fields in a message and in those
// in it. A string that could be a message counts as one.
func protobufElements(message []byte) int {
	count, _ := countFields(message, 0)
	return count
}

// countFields reports false for what is not a message.
func countFields(message []byte, depth int) (count int, ok bool) {
	if depth > deepest {
		return 0, false
	}
	var seen uint64
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return 0, false
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return 0, false
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			if number >= bitFields || seen&(1<<number) != 0 {
				count++
			} else {
				seen |= 1 << number
			}
			if inner, ok := countFields(value, depth+1); ok {
				count += inner
			}
		}
		message = message[n:]
	}
	return count, true
}

package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// cursor reads a JSON text of the super cluster from front to back, without
// decoding what it steps over. After an error, which it keeps, it is at the end.
type cursor struct {
	data []byte
	at   int
	err  error
	// from has what follows; nil if the data is all.
	from io.Reader
}

// errText is a text that is not JSON.
var errText = errors.New("the super cluster's response is not JSON")

// errCut is a response that ended early.
var errCut = errors.New("the super cluster's response ended early")

// maxValue is how much of a response is held at once, in bytes: far more than
// the largest object that an apiserver stores.
const maxValue = 32 << 20

// errTooLarge is a value that is larger.
var errTooLarge = fmt.Errorf("an object of the super cluster is larger than %d bytes", maxValue)

// minRead is how many bytes are asked for at least.
const minRead = 4 << 10

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.at, c.from = len(c.data), nil
}

// fill reads more, and reports false at the end.
func (c *cursor) fill() bool {
	for c.from != nil {
		if len(c.data) > maxValue {
			c.fail(errTooLarge)
			return false
		}
		if cap(c.data)-len(c.data) < minRead {
			c.data = append(make([]byte, 0, 2*cap(c.data)+2*minRead), c.data...)
		}
		n, err := c.from.Read(c.data[len(c.data):cap(c.data)])
		c.data = c.data[:len(c.data)+n]
		switch {
		case err == io.EOF:
			c.from = nil
		case err != nil: // which may name the super cluster
			c.fail(errCut)
			return false
		}
		if n > 0 {
			return true
		}
	}
	return false
}

// release forgets what was read, so that what follows takes its place. It moves
// no more than was read.
func (c *cursor) release() {
	if c.at < len(c.data)-c.at {
		return
	}
	c.data = c.data[:copy(c.data, c.data[c.at:])]
	c.at = 0
}

// peek returns the next byte that is no white space, or 0 at the end.
func (c *cursor) peek() byte {
	for {
		for ; c.at < len(c.data); c.at++ {
			switch b := c.data[c.at]; b {
			case ' ', '\t', '\r', '\n':
			default:
				return b
			}
		}
		if !c.fill() {
			return 0
		}
	}
}

// take steps over a byte that must be next.
func (c *cursor) take(b byte) {
	if c.peek() != b {
		c.fail(errText)
		return
	}
	c.at++
}

// next reports whether an object or a list, which ends with a byte, has another
// element, and steps over the comma before it.
func (c *cursor) next(first bool, end byte) bool {
	switch b := c.peek(); {
	case b == end:
		c.at++
		return false
	case b == 0:
		c.fail(errText)
		return false
	case !first:
		c.take(',')
	}
	return c.err == nil
}

// name steps over the name of a member and the colon, and returns the name.
func (c *cursor) name() []byte {
	if c.peek() != '"' {
		c.fail(errText)
		return nil
	}
	start := c.at
	c.text()
	quoted := c.data[start:c.at]
	c.take(':')
	if c.err != nil {
		return nil
	}
	return unquoted(quoted)
}

// unquoted returns what a JSON string says.
func unquoted(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	_ = json.Unmarshal(quoted, &text) // what is not understood is no name of a field
	return []byte(text)
}

// value steps over a value, and returns it.
func (c *cursor) value() []byte {
	b, start := c.peek(), c.at
	switch b {
	case '"':
		c.text()
	case '{', '[':
		c.nested()
	default:
		c.scalar()
	}
	if c.err != nil {
		return nil
	}
	return c.data[start:c.at]
}

// text steps over a string.
func (c *cursor) text() {
	start := c.at
	c.at++
	for {
		end := bytes.IndexByte(c.data[c.at:], '"')
		if end < 0 {
			if c.at = len(c.data); !c.fill() {
				c.fail(errText)
				return
			}
			continue
		}
		c.at += end + 1
		if c.data[c.at-2] != '\\' || !escaped(c.data[start+1:c.at-1]) {
			return
		}
	}
}

// escaped reports whether the quotation mark after a text is part of it.
func escaped(text []byte) bool {
	slashes := len(text) - len(bytes.TrimRight(text, `\`))
	return slashes%2 == 1
}

// structure has the bytes that begin or end a string, an object or a list.
var structure = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

// nested steps over an object or a list.
func (c *cursor) nested() {
	for depth := 0; ; {
		at := c.at
		for at < len(c.data) && !structure[c.data[at]] {
			at++
		}
		c.at = at
		if at == len(c.data) {
			if !c.fill() {
				c.fail(errText)
				return
			}
			continue
		}
		switch c.data[at] {
		case '"':
			if c.text(); c.err != nil {
				return
			}
			continue
		case '{', '[':
			depth++
		default:
			depth--
		}
		if c.at++; depth == 0 {
			return
		}
	}
}

// scalar steps over a number, true, false or null.
func (c *cursor) scalar() {
	start := c.at
	for {
		for ; c.at < len(c.data); c.at++ {
			if b := c.data[c.at]; !isScalar(b) {
				break
			}
		}
		if c.at < len(c.data) || !c.fill() {
			break
		}
	}
	if c.at == start {
		c.fail(errText)
	}
}

func isScalar(b byte) bool {
	return '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || b == '-' || b == '+' || b == '.' || b == 'E'
}

// lookup returns the value at a path of members, which it does not read past; nil
// if there is none.
func lookup(data []byte, path ...string) []byte {
	c := cursor{data: data}
	return c.ahead(path...)
}

// ahead returns the value at a path of members of the next value, as lookup does.
// The cursor stays before the next value.
func (c *cursor) ahead(path ...string) []byte {
	start := c.at
	defer func() {
		if c.err == nil {
			c.at = start
		}
	}()
	for _, step := range path {
		if c.peek() != '{' || !c.enter(step) {
			return nil
		}
	}
	return c.value()
}

// enter goes to the value of a member of an object, or reports false.
func (c *cursor) enter(member string) bool {
	c.take('{')
	for first := true; c.next(first, '}'); first = false {
		if string(c.name()) == member {
			return c.err == nil
		}
		c.value()
	}
	return false
}

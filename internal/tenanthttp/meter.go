package tenanthttp

import (
	"encoding/binary"
	"strconv"
)

// meter measures an answer as it is read.
type meter interface {
	// count takes the next bytes and returns the limit that they exceed, in
	// words; empty if none.
	count(data []byte) string
}

// wholeMeter bounds the bytes of an answer.
type wholeMeter struct {
	most, read int64
	limit      string
}

func (m *wholeMeter) count(data []byte) string {
	m.read += int64(len(data))
	return exceeds(m.read, m.most, m.limit)
}

// exceeds names a limit if it is exceeded.
func exceeds(read, most int64, limit string) string {
	if read <= most {
		return ""
	}
	return limit + " (" + strconv.FormatInt(most, 10) + ")"
}

// frameMeter bounds the frames of a stream of protocol buffers, each of which
// follows its length.
type frameMeter struct {
	most   int64
	header []byte
	left   int64
}

// frameHeader is how many bytes the length of a frame takes.
const frameHeader = 4

func (m *frameMeter) count(data []byte) string {
	for len(data) > 0 {
		if m.left > 0 {
			n := min(m.left, int64(len(data)))
			m.left -= n
			data = data[n:]
			continue
		}
		n := min(frameHeader-len(m.header), len(data))
		m.header = append(m.header, data[:n]...)
		data = data[n:]
		if len(m.header) < frameHeader {
			continue
		}
		m.left = int64(binary.BigEndian.Uint32(m.header))
		m.header = m.header[:0]
		if limit := exceeds(m.left, m.most, "the bytes of an event"); limit != "" {
			return limit
		}
	}
	return ""
}

// jsonMeter bounds the bytes and the elements of JSON: of all of an answer, or
// of each value in a stream. Elements are objects, lists and nulls: each may
// become a struct of a thousand bytes, of which the text takes two or three.
type jsonMeter struct {
	most  int64
	limit string
	// each is set for a stream of values.
	each bool
	// elements is how many elements there may be; 0 is any number.
	elements int64
	// items is how many elements of the list items there may be, each with
	// perItem elements more; 0 is any number.
	items int64

	read, seenElements, seenItems int64
	depth                         int
	inString, escaped             bool
}

// perItem is how many elements an item of a list may have on average beyond
// those that a list may have anyway.
const perItem = 2 << 10

// itemDepth is how deep an object is inside of the items of a list: within the
// list and its items.
const itemDepth = 2

func (m *jsonMeter) count(data []byte) string {
	for _, c := range data {
		m.read++
		switch {
		case m.inString:
			m.text(c)
		case c == '"':
			m.inString = true
		case c == '{' || c == '[':
			m.element(c)
			m.depth++
		case c == 'n': // null: nothing else in JSON has the letter outside of texts
			m.element(c)
		case c == '}' || c == ']':
			m.depth--
			if !m.each || m.depth > 0 {
				continue
			}
			if limit := m.exceeded(); limit != "" {
				return limit
			}
			m.read, m.seenElements, m.depth = 0, 0, 0
		}
	}
	return m.exceeded()
}

// element counts an element.
func (m *jsonMeter) element(c byte) {
	m.seenElements++
	if c == '{' && m.depth == itemDepth {
		m.seenItems++
	}
}

// text reads a byte of a text.
func (m *jsonMeter) text(c byte) {
	switch {
	case m.escaped:
		m.escaped = false
	case c == '\\':
		m.escaped = true
	case c == '"':
		m.inString = false
	}
}

func (m *jsonMeter) exceeded() string {
	limit := exceeds(m.read, m.most, m.limit)
	if limit == "" && m.items > 0 {
		limit = exceeds(m.seenItems, m.items, "the requested items")
	}
	if limit == "" && m.elements > 0 {
		limit = exceeds(m.seenElements, m.elements+min(m.seenItems, m.items)*perItem, "the elements of JSON")
	}
	return limit
}

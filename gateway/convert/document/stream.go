package document

import (
	"encoding/json"
	"io"

	kjson "sigs.k8s.io/json"
)

// Chunk is how much of a list is written at once, in bytes.
const Chunk = 64 << 10

// Stream converts a document of the super cluster while it is read. Objects are
// spliced, so that a list takes the memory of one of its objects.
func (r *Response) Stream(w io.Writer, from io.Reader) error {
	c := &cursor{from: from}
	if !r.Many || r.Finish != nil {
		return r.streamOne(w, c)
	}
	s := &stream{Response: r, cursor: c, w: w, out: make([]byte, 0, Chunk)}
	s.members()
	if s.peek() != 0 {
		s.fail(errText)
	}
	s.flush(0)
	return c.err
}

// streamOne converts a document as a whole.
func (r *Response) streamOne(w io.Writer, c *cursor) error {
	data := c.value()
	if c.peek() != 0 {
		c.fail(errText)
	}
	if c.err != nil {
		return c.err
	}
	out, err := r.Document(data)
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// Document converts the text of a document. What is no object of the kind is decoded.
func (r *Response) Document(data []byte) ([]byte, error) {
	kind, _ := textOf(lookup(data, "kind")).(string)
	version, _ := textOf(lookup(data, apiVersion)).(string)
	if r.Finish == nil && !r.Many && !isStatus(kind, version) && !isTable(kind, version) {
		c := &cursor{data: data}
		out := r.splice(make([]byte, 0, len(data)), c)
		if c.peek() != 0 {
			c.fail(errText)
		}
		return out, c.err
	}
	object, err := ParseTrusted(data)
	if err != nil {
		return nil, err
	}
	if err := r.Up(object); err != nil {
		return nil, err
	}
	return Write(object)
}

// stream converts a list, or a Table of several objects.
type stream struct {
	*Response
	*cursor

	w   io.Writer
	out []byte
}

// flush writes what was converted, if it is more than that many bytes.
func (s *stream) flush(most int) {
	if len(s.out) <= most || s.err != nil {
		return
	}
	if _, err := s.w.Write(s.out); err != nil {
		s.fail(err)
	}
	s.out = s.out[:0]
}

func (s *stream) put(text ...byte) { s.out = append(s.out, text...) }

// members converts the members of the list one by one.
func (s *stream) members() {
	s.take('{')
	s.put('{')
	isList := false
	for first := true; s.next(first, '}'); first = false {
		if !first {
			s.put(',')
		}
		s.peek()
		start := s.at
		name := string(s.name())
		s.put(s.data[start:s.at]...)
		s.member(name)
		isList = isList || name == "items" || name == "rows"
	}
	if !isList {
		s.fail(errShape)
	}
	s.put('}')
}

// member converts a member. One that lists do not have could be anything.
func (s *stream) member(name string) {
	switch name {
	case "kind":
		s.put(s.value()...)
	case apiVersion:
		s.write(s.listVersion(textOf(s.value())))
	case "metadata":
		list := Object{}
		if s.decode(&list); s.err == nil {
			s.seal(Object{"metadata": list})
			s.write(list)
		}
	case "items":
		s.elements(s.splice)
	case "columnDefinitions":
		s.columns = nil
		s.decode(&s.columns)
		s.write(s.columns)
	case "rows":
		s.elements(s.row)
	default:
		s.fail(errShape)
	}
}

// elements converts the elements of a list by a function that appends the next.
func (s *stream) elements(convert func(out []byte, c *cursor) []byte) {
	if s.peek() != '[' {
		s.put(s.value()...) // null
		return
	}
	s.take('[')
	s.put('[')
	for first := true; s.next(first, ']'); first = false {
		if !first {
			s.put(',')
		}
		s.out = convert(s.out, s.cursor)
		s.flush(Chunk)
		s.release()
	}
	s.put(']')
}

func (s *stream) decode(into any) {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(s.value(), into); err != nil {
		s.fail(err)
	}
}

func (s *stream) write(value any) {
	data, err := json.Marshal(value)
	if err != nil {
		s.fail(err)
	}
	s.put(data...)
}

// row appends the row of a Table that is next, converted.
func (r *Response) row(out []byte, c *cursor) []byte {
	s := r.splicer(out, c, "object", "metadata", r.namespaceField())
	s.object(func(name []byte) bool {
		switch string(name) {
		case "object":
			return s.field(r.Fields)
		case "cells":
			return s.cells(r)
		}
		s.copy()
		return true
	})
	return s.out
}

// cells converts the cells of a row, if some may hold names.
func (s *splicer) cells(r *Response) bool {
	if len(r.Kind.Cells) == 0 {
		s.copy()
		return true
	}
	var cells []any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(s.value(), &cells); err != nil {
		s.fail(err)
		return true
	}
	return s.write(cells, r.cells(cells, s.namespace))
}

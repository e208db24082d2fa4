package document

import (
	"io"
)

// Events reads the events of a watch of the super cluster.
type Events struct{ cursor cursor }

// NewEvents returns the events of a response.
func NewEvents(from io.Reader) *Events { return &Events{cursor{from: from}} }

// Next returns the type of the next event and its object, until there is
// another one; false at the end.
func (e *Events) Next() (kind string, object []byte, ok bool) {
	e.cursor.release()
	if e.cursor.peek() == 0 {
		return "", nil, false
	}
	frame := e.cursor.value()
	kind, _ = textOf(lookup(frame, "type")).(string)
	object = lookup(frame, "object")
	return kind, object, object != nil
}

package watchstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Op is what a frame reports.
type Op byte

// The operations of frames.
const (
	// Begin means that a list of the kind follows.
	Begin Op = iota + 1
	// Put has the state of an object, in protocol buffers.
	Put
	// Same has the name and revision of a listed object that has not changed
	// since the client knows it.
	Same
	// Listed means that the list is complete; Revision is that of the list.
	Listed
	// Gone has the name of an object that was deleted or is no longer selected,
	// the revision of that, and its last state, if that is known.
	Gone
)

// MaxFrame is the maximum size of a frame. No object in etcd is larger than 1.5
// MiB.
const MaxFrame = 4 << 20

// lengthSize is the size of the length before a frame.
const lengthSize = 4

// errFrame reports a frame that no host sends.
var errFrame = errors.New("the frame is invalid")

// Frame is one message of a stream.
type Frame struct {
	Op Op
	// Kind is the number of the kind in the request.
	Kind int
	// Revision is that of the state, or of the list.
	Revision int64
	// Name is the name of the object, with its namespace before it if it has
	// one: team/web.
	Name string
	// Object is the object, in protocol buffers.
	Object []byte
}

// Append appends the encoded frame.
func (f Frame) Append(to []byte) []byte {
	start := len(to)
	to = append(to, 0, 0, 0, 0, byte(f.Op), byte(f.Kind)) //nolint:gosec // a request has less than 256 kinds
	to = binary.AppendUvarint(to, uint64(f.Revision))     //nolint:gosec // revisions are positive
	to = binary.AppendUvarint(to, uint64(len(f.Name)))
	to = append(to, f.Name...)
	to = append(to, f.Object...)
	binary.BigEndian.PutUint32(to[start:], uint32(len(to)-start-lengthSize)) //nolint:gosec // less than MaxFrame
	return to
}

// Reader reads frames.
type Reader struct {
	from   io.Reader
	buffer []byte
}

// NewReader returns a reader of the frames of a response.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// keptBuffer is the maximum size of a buffer that a reader keeps while it waits
// for the next frame.
const keptBuffer = 4 << 10

// Next reads the next frame. Its object is valid until the next call.
func (r *Reader) Next() (Frame, error) {
	var length [lengthSize]byte
	if cap(r.buffer) > keptBuffer {
		r.buffer = nil
	}
	if _, err := io.ReadFull(r.from, length[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size < 2 || size > MaxFrame {
		return Frame{}, fmt.Errorf("%w: it has %d bytes", errFrame, size)
	}
	if cap(r.buffer) < int(size) {
		r.buffer = make([]byte, size)
	}
	data := r.buffer[:size]
	if _, err := io.ReadFull(r.from, data); err != nil {
		return Frame{}, err
	}
	return parse(data)
}

func parse(data []byte) (Frame, error) {
	f := Frame{Op: Op(data[0]), Kind: int(data[1])}
	if f.Op < Begin || f.Op > Gone {
		return Frame{}, fmt.Errorf("%w: operation %d is unknown", errFrame, f.Op)
	}
	data = data[2:]
	revision, n := binary.Uvarint(data)
	if n <= 0 || revision > 1<<62 {
		return Frame{}, fmt.Errorf("%w: it has no revision", errFrame)
	}
	f.Revision, data = int64(revision), data[n:]
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) { //nolint:gosec // n is at most the length
		return Frame{}, fmt.Errorf("%w: it ends in the name", errFrame)
	}
	data = data[n:]
	f.Name, f.Object = string(data[:length]), data[length:]
	return f, nil
}

package vnagent

import (
	"errors"
	"io"

	"github.com/prometheus/client_golang/prometheus"
)

// bufferSize is what a stream takes in each direction while it waits, which
// most of them do most of the time.
const bufferSize = 8 << 10

// buffers are the buffers of answers that are no streams.
type buffers struct{}

func (buffers) Get() []byte { return make([]byte, bufferSize) }
func (buffers) Put([]byte)  {}

// countedBody counts what is read of an answer.
type countedBody struct {
	io.ReadCloser

	up prometheus.Counter
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.up.Add(float64(n))
	return n, err
}

// countedStream is the super cluster's end of a stream. It copies with buffers
// of its own and counts the bytes.
type countedStream struct {
	io.ReadWriteCloser

	up, down prometheus.Counter
}

// WriteTo copies the bytes from the pod.
func (s *countedStream) WriteTo(tenant io.Writer) (int64, error) {
	return transfer(tenant, s.ReadWriteCloser, s.up)
}

// ReadFrom copies the bytes to the pod.
func (s *countedStream) ReadFrom(tenant io.Reader) (int64, error) {
	return transfer(s.ReadWriteCloser, tenant, s.down)
}

// transfer copies bytes as they arrive, until the source ends.
func transfer(to io.Writer, from io.Reader, count prometheus.Counter) (sum int64, err error) {
	buffer := make([]byte, bufferSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			written, err := to.Write(buffer[:n])
			sum += int64(written)
			count.Add(float64(written))
			if err != nil {
				return sum, err
			}
		}
		if err == io.EOF {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
	}
}

// CloseWrite passes on that the tenant sends no more.
func (s *countedStream) CloseWrite() error {
	if half, ok := s.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

package vnagent

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestStreamCarriesAsItComes: what is said is handed on at once, both ways, and
// counted.
func TestStreamCarriesAsItComes(t *testing.T) {
	near, pod := net.Pipe()
	stream := &countedStream{
		ReadWriteCloser: near,
		up:              prometheus.NewCounter(prometheus.CounterOpts{Name: "up_total", Help: "of a test"}),
		down:            prometheus.NewCounter(prometheus.CounterOpts{Name: "down_total", Help: "of a test"}),
	}
	tenant, far := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(stream, tenant)
		ended <- err
	}()
	word := make([]byte, 4)
	for _, said := range []string{"one ", "two "} {
		if _, err := far.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(pod, word); err != nil || string(word) != said {
			t.Fatalf("got %q, %v", word, err)
		}
	}
	_ = far.Close()
	if err := <-ended; err != nil {
		t.Errorf("the end of what is said is no error: %v", err)
	}

	go func() {
		_, _ = io.Copy(pod, strings.NewReader(strings.Repeat("x", 3*bufferSize+1)))
		_ = pod.Close()
	}()
	var heard bytes.Buffer
	if _, err := io.Copy(&heard, stream); err != nil || heard.Len() != 3*bufferSize+1 {
		t.Errorf("heard %d bytes, %v", heard.Len(), err)
	}
	if up, down := testutil.ToFloat64(stream.up), testutil.ToFloat64(stream.down); up != 3*bufferSize+1 || down != 8 {
		t.Errorf("counted %v up and %v down", up, down)
	}
}

// TestStreamBreaksOff: an end that takes no more ends the stream with its error.
func TestStreamBreaksOff(t *testing.T) {
	broken := errors.New("gone")
	reader, writer := io.Pipe()
	_ = reader.CloseWithError(broken)
	if _, err := transfer(writer, strings.NewReader("x"), prometheus.NewCounter(prometheus.CounterOpts{Name: "n_total", Help: "of a test"})); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

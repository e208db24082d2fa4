package command

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/virtualcluster/virtualcluster/cli/doctor"
	"github.com/virtualcluster/virtualcluster/cli/exit"
)

// TestProbe connects to a server that runs, and to none.
func TestProbe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	ended := make(chan int)
	go func() {
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: write}
		ended <- Main(ctx, streams, []string{"probe", "serve", "--address", "127.0.0.1:0"})
	}()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(strings.TrimPrefix(line, "Listening at "))
	nothing := unusedAddress(t)
	for name, tt := range map[string]struct {
		address, expect string
		want            int
	}{
		"open, as expected":     {address, doctor.ExpectOpen, exit.Done},
		"open, and not closed":  {address, doctor.ExpectClosed, doctor.ProbeUnexpected},
		"closed, as expected":   {nothing, doctor.ExpectClosed, exit.Done},
		"closed, and not open":  {nothing, doctor.ExpectOpen, doctor.ProbeUnexpected},
		"neither of the values": {nothing, "ajar", exit.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}
			within := "2500ms"
			if tt.want == exit.Done {
				within = "1m"
			}
			got := Main(t.Context(), streams, []string{"probe", "connect", tt.address, "--expect", tt.expect, "--within", within})
			if got != tt.want {
				t.Errorf("exit code %d, want %d: %s", got, tt.want, out)
			}
		})
	}
	stop()
	if code := <-ended; code != exit.Done {
		t.Errorf("the server ends with exit code %d", code)
	}
}

// unusedAddress returns an address at which nothing listens.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// toleratedDrift is a difference of clocks that nothing depends on.
	toleratedDrift = 10 * time.Second
	// certificateSkew is how far ahead of a client's clock certificates may be
	// made: they are dated back by as much.
	certificateSkew = 5 * time.Minute
)

// clock compares the clock of this machine with that of the super cluster.
func clock(ctx context.Context, s *Super) Result {
	drift, err := s.drift(ctx)
	if err != nil {
		return unread(err)
	}
	return clockVerdict(drift)
}

// clockVerdict judges by how much the clock of the super cluster is ahead.
func clockVerdict(drift time.Duration) Result {
	const next = "Synchronize the clocks, such as by NTP"
	message := "the clock of the super cluster is %s %s of that of this machine"
	direction := "ahead"
	if drift < 0 {
		direction = "behind"
	}
	switch distance := drift.Abs().Round(time.Second); {
	case distance > certificateSkew:
		return failed(next, message+"; certificates and tokens appear as expired, or as not valid yet", distance, direction)
	case distance > toleratedDrift:
		return warning(next, message, distance, direction)
	}
	return ok("the clocks of the super cluster and of this machine agree")
}

// drift returns by how much the clock of the apiserver is ahead of that of this
// machine, as far as a request can tell.
func (s *Super) drift(ctx context.Context) (time.Duration, error) {
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return 0, fmt.Errorf("connect to the super cluster: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.HTTP.Get().AbsPath("/version").URL().String(), nil)
	if err != nil {
		return 0, fmt.Errorf("connect to the super cluster: %w", err)
	}
	sent := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("get the time of the super cluster: %w", err)
	}
	received := time.Now()
	const most = 1 << 16
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, most))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0, fmt.Errorf("get the time of the super cluster: %w", err)
	}
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return 0, errors.New("get the time of the super cluster: the answer has no header Date")
	}
	return driftOf(sent, received, date), nil
}

// driftOf returns the least difference that a header Date, which has whole
// seconds, proves: the answer was written between sent and received.
func driftOf(sent, received, date time.Time) time.Duration {
	switch latest := date.Add(time.Second); {
	case date.After(received):
		return date.Sub(received)
	case latest.Before(sent):
		return latest.Sub(sent)
	}
	return 0
}

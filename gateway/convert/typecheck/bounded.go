package typecheck

import "net/http"

// bounded sends requests of which only the beginning of each response is read, and
// which are not sent again at a time that the server chooses.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
		response.Body = http.MaxBytesReader(nil, response.Body, maxDocument)
	}
	return response, err
}

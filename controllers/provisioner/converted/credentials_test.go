package converted

import (
	"bytes"
	"testing"
	"time"

	"github.com/virtualcluster/virtualcluster/internal/pki"
)

// TestRenewCertificates: certificates are renewed in time, and users of an
// authority that has a successor are still known.
func TestRenewCertificates(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(data map[string][]byte, after time.Duration) map[string][]byte {
		renewed, err := renewCertificates(data, 90*day, start.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return renewed
	}
	first := at(nil, 0)
	if again := at(first, 50*day); !bytes.Equal(again[adminKey], first[adminKey]) {
		t.Error("the certificate of the admin was renewed early")
	}
	later := at(first, 70*day)
	if bytes.Equal(later[adminKey], first[adminKey]) || !bytes.Equal(later[authoritiesKey], first[authoritiesKey]) {
		t.Error("after two thirds of its life, the certificate of the admin alone is to be renewed")
	}
	successor := at(first, 8*365*day)
	if !bytes.HasPrefix(successor[authoritiesKey], first[authoritiesKey]) || len(successor[authoritiesKey]) == len(first[authoritiesKey]) {
		t.Error("the authority has no successor beside it")
	}
	lost := at(map[string][]byte{authoritiesKey: []byte("nothing")}, 0)
	if len(pki.ParseAuthorities(lost[authoritiesKey], lost[authoritiesKeyKey], start)) != 1 {
		t.Error("an authority that cannot be read is not replaced")
	}
}

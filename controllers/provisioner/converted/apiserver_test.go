package converted

import "testing"

func TestAddressOf(t *testing.T) {
	for gateway, want := range map[string]struct {
		address string
		port    int32
	}{
		"https://192.0.2.7:8443":        {"192.0.2.7", 8443},
		"https://[2001:db8::7]":         {"2001:db8::7", 443},
		"https://gw.example.com:9443/a": {"invalid IP", 9443},
		"https://127.0.0.1:6443":        {"invalid IP", 6443},
		"https://169.254.0.1":           {"invalid IP", 443},
	} {
		address, port, err := addressOf(gateway)
		if err != nil || address.String() != want.address || port != want.port {
			t.Errorf("%s has %s, %d, %v, want %v", gateway, address, port, err, want)
		}
	}
}

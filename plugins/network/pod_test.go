package network

import (
	"strings"
	"testing"
)

func TestParseNIC(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want NIC
		err  string
	}{
		"of the design":        {`{"name": "eth0", "ip": "192.168.0.12"}`, NIC{Name: "eth0", IP: "192.168.0.12"}, ""},
		"a named subnet":       {`{"subnet": "subnet-1", "ip": "192.168.0.12"}`, NIC{Subnet: "subnet-1", IP: "192.168.0.12"}, ""},
		"a range":              {`{"subnet": "192.168.100.0/26", "ip": "192.168.100.5"}`, NIC{Subnet: "192.168.100.0/26", IP: "192.168.100.5"}, ""},
		"IPv6":                 {`{"subnet": "fd00::/64", "ip": "fd00::5"}`, NIC{Subnet: "fd00::/64", IP: "fd00::5"}, ""},
		"nothing":              {`{}`, NIC{}, ""},
		"an address elsewhere": {`{"subnet": "192.168.100.0/26", "ip": "192.168.100.65"}`, NIC{}, "of the subnet"},
		"the other family":     {`{"subnet": "192.168.100.0/26", "ip": "fd00::5"}`, NIC{}, "of the subnet"},
		"no JSON":              {`eth0`, NIC{}, "one JSON object"},
		"empty":                {``, NIC{}, "one JSON object"},
		"a list":               {`[{"name": "eth0"}]`, NIC{}, "one JSON object"},
		"two":                  {`{} {}`, NIC{}, "one JSON object"},
		"another key":          {`{"mac": "00:00:00:00:00:00"}`, NIC{}, "one JSON object"},
		"a number":             {`{"ip": 1}`, NIC{}, "one JSON object"},
		"no address":           {`{"ip": "192.168.0"}`, NIC{}, "ip must be"},
		"of an interface":      {`{"ip": "fe80::1%eth0"}`, NIC{}, "ip must be"},
		"no interface":         {`{"name": "../eth0"}`, NIC{}, "name must be"},
		"a long interface":     {`{"name": "abcdefghijklmnop"}`, NIC{}, "name must be"},
		"no subnet":            {`{"subnet": "a b"}`, NIC{}, "subnet must be"},
		"long":                 {`{"subnet": "` + strings.Repeat("a", maxNIC) + `"}`, NIC{}, "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseNIC(tc.text)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("got %v, want %q", err, tc.err)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

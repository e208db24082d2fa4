package host

import "testing"

func TestKeyBelow(t *testing.T) {
	for _, c := range []struct{ name, domain, want string }{
		{"team-0a1b2c-shop.example.com", "example.com", "team-0a1b2c-shop"},
		{"team-0a1b2c-shop.example.com", "", ""},
		{"team-0a1b2c-shop.example.org", "example.com", ""},
		{"team-0a1b2c-shopexample.com", "example.com", ""},
		{"a.team-0a1b2c-shop.example.com", "example.com", ""},
		{"shop.example.com", "example.com", ""},
		{"example.com", "example.com", ""},
		{".example.com", "example.com", ""},
		{"", "example.com", ""},
	} {
		if got, found := keyBelow(c.name, c.domain); found != (c.want != "") || found && got != c.want {
			t.Errorf("%q below %q leads to %q, %t, want %q", c.name, c.domain, got, found, c.want)
		}
	}
}

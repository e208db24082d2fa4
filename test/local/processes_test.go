package local

import "testing"

func TestParseProcess(t *testing.T) {
	for text, want := range map[string]process{
		"7 (etcd) S 1 7 7 0":      {pid: 7, parent: 1, name: "etcd"},
		"70 (a) (b)) R 12 70 0 0": {pid: 70, parent: 12, name: "a) (b)"},
	} {
		if got, err := parseProcess(text); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7 etcd S 1", "7 (etcd) S", "x (etcd) S 1"} {
		if got, err := parseProcess(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

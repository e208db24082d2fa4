package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestUsers(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"suite":   "func start() { helper() }",
		"helpers": "func helper() {}",
		"a":       "type pair struct{}\n\nfunc newPair() *pair { return nil }",
		"a_more":  "func (p *pair) both() { other.alone() }",
		"b":       "var _ = func() { newPair() }",
		"c":       "var _ = func() { twice() }\n\nfunc alone() {}",
		"c_more":  "func twice() { newPair() }",
	} {
		write(t, file+"_test.go", "package specs\n\n"+text+"\n")
	}
	users, err := usersIn(".")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"a", "a_more", "b", "c", "c_more", "helpers", "suite"}
	for file, want := range map[string][]string{
		"suite":   all,
		"helpers": all,
		"a":       {"a", "a_more", "b", "c", "c_more"},
		"a_more":  {"a", "a_more", "b", "c", "c_more"}, // by a method of a value that comes from a
		"b":       {"b"},
		"c":       {"c"}, // a field of the same name is none of its functions
		"c_more":  {"c", "c_more"},
	} {
		var got []string
		for _, user := range users[file+"_test.go"] {
			got = append(got, strings.TrimSuffix(user, "_test.go"))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s is used by %q, want %q", file, got, want)
		}
	}
	if err := os.WriteFile("d_test.go", []byte("package specs\n\nfunc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := usersIn("."); err == nil {
		t.Error("got no error for a file that does not compile")
	}
}

// TestUsersOfTheSpecs: those of this project, by an example.
func TestUsersOfTheSpecs(t *testing.T) {
	t.Chdir("../..")
	users, err := specUsers()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file, user string
		want       bool
	}{
		{"killer", "networks_kill", true},
		{"kubectl_vc", "converted_tenants", true},
		{"networks_kill", "gateway", false},
		{"suite", "routes", true},
	} {
		file, user := filepath.Join("test/integration", tc.file+"_test.go"), filepath.Join("test/integration", tc.user+"_test.go")
		if got := slices.Contains(users[file], user); got != tc.want {
			t.Errorf("%s uses %s: %v", tc.user, tc.file, got)
		}
	}
}

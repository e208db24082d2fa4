package hosted

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWriteFile(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(path string) error
		fails   bool
	}{
		"a new file":            {prepare: func(string) error { return nil }},
		"an old one":            {prepare: func(path string) error { return os.WriteFile(path, []byte("old and longer"), 0o644) }},
		"a link":                {prepare: func(path string) error { return os.Symlink("/dev/full", path) }},
		"a directory":           {prepare: func(path string) error { return os.MkdirAll(filepath.Join(path, "in it"), 0o700) }, fails: true},
		"no directory above it": {prepare: func(path string) error { return os.Remove(filepath.Dir(path)) }, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := filepath.Join(t.TempDir(), "dir")
			path := filepath.Join(dir, "file")
			g.Expect(os.Mkdir(dir, 0o700)).To(Succeed())
			g.Expect(test.prepare(path)).To(Succeed())
			err := writeFile(path, []byte("new"))
			if test.fails {
				g.Expect(err).To(MatchError(ContainSubstring(path)))
				g.Expect(filepath.Glob(filepath.Join(dir, ".*"))).To(BeEmpty(), "a temporary file is left")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(os.ReadFile(path)).To(BeEquivalentTo("new"))
			info, err := os.Lstat(path)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(info.Mode()).To(Equal(os.FileMode(0o600)))
			g.Expect(os.ReadDir(dir)).To(HaveLen(1), "a temporary file is left")
		})
	}
}

func TestSplitPEM(t *testing.T) {
	const (
		cert  = "-----BEGIN CERTIFICATE-----\nAQ==\n-----END CERTIFICATE-----\n"
		key   = "-----BEGIN EC PRIVATE KEY-----\nAg==\n-----END EC PRIVATE KEY-----\n"
		other = "-----BEGIN CERTIFICATE-----\nAw==\n-----END CERTIFICATE-----\n"
	)
	for name, test := range map[string]struct{ data, certs, key string }{
		"nothing":           {"", "", ""},
		"no PEM":            {"garbage", "", ""},
		"both":              {cert + key, cert, key},
		"the other way":     {key + cert, cert, key},
		"a chain":           {cert + key + other, cert + other, key},
		"text between":      {"a\n" + cert + "b\n" + key + "c", cert, key},
		"a block cut short": {cert + key[:40], cert, ""},
	} {
		t.Run(name, func(t *testing.T) {
			certs, private := splitPEM([]byte(test.data))
			if string(certs) != test.certs || string(private) != test.key {
				t.Errorf("got %q and %q", certs, private)
			}
		})
	}
}

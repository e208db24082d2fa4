package hosted

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

func TestReadOrMake(t *testing.T) {
	g := NewWithT(t)
	keys := directory(t.TempDir())
	path := keys.Locate("file")
	_, err := readOrMake(keys, "file", func() ([]byte, error) { return []byte("half"), errors.New("no entropy") })
	g.Expect(err).To(MatchError(ContainSubstring("no entropy")))
	g.Expect(path).NotTo(BeAnExistingFile())
	for _, content := range []string{"first", "second"} {
		data, err := readOrMake(keys, "file", func() ([]byte, error) { return []byte(content), nil })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(data)).To(Equal("first"))
	}
}

func TestEnsureFile(t *testing.T) {
	g := NewWithT(t)
	keys := directory(t.TempDir())
	path := keys.Locate("file")
	inode := func() fs.FileInfo {
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		return info
	}
	g.Expect(ensureFile(keys, "file", []byte("a"))).To(Succeed())
	first := inode()
	g.Expect(ensureFile(keys, "file", []byte("a"))).To(Succeed())
	g.Expect(os.SameFile(first, inode())).To(BeTrue(), "a file that is up to date is written")
	g.Expect(ensureFile(keys, "file", []byte("b"))).To(Succeed())
	g.Expect(os.ReadFile(path)).To(BeEquivalentTo("b"))
}

// sharedKeys is a keyring of one control plane that several hosts use, as one of
// Secrets is.
type sharedKeys struct {
	mu      sync.Mutex
	version int
	files   map[string][]byte
	// commits counts the attempts to store keys.
	commits int
}

func (s *sharedKeys) Open(context.Context, string) (Keys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &openKeys{of: s, version: s.version, files: maps.Clone(s.files)}, nil
}

func (*sharedKeys) Delete(context.Context, string) error { return nil }

type openKeys struct {
	of      *sharedKeys
	version int
	files   map[string][]byte
	written bool
}

func (k *openKeys) Read(file string) ([]byte, error) {
	if data, ok := k.files[file]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (k *openKeys) Write(file string, data []byte) error {
	k.files[file], k.written = data, true
	return nil
}

func (k *openKeys) Commit(context.Context) error {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.of.commits++
	switch {
	case !k.written:
		return nil
	case k.version != k.of.version:
		return ErrKeysChanged
	}
	k.of.files, k.of.version = k.files, k.of.version+1
	return nil
}

func (*openKeys) Locate(file string) string { return file }

// TestHostsAgreeOnKeys: of two hosts that create the keys of a control plane at the
// same time, one adopts those of the other.
func TestHostsAgreeOnKeys(t *testing.T) {
	g := NewWithT(t)
	keyring := &sharedKeys{files: map[string][]byte{}}
	loaded := make([]*credentials, 4)
	var loading sync.WaitGroup
	for i := range loaded {
		loading.Go(func() {
			c, err := loadCredentials(t.Context(), keyring, Spec{Name: "red", SeparateKubeletClientCA: true}.withDefaults(DefaultServiceCIDR),
				servingNames{[]string{"a"}, []net.IP{net.IPv4(127, 0, 0, 1)}})
			g.Expect(err).NotTo(HaveOccurred())
			loaded[i] = c
		})
	}
	loading.Wait()
	for _, c := range loaded {
		g.Expect(c.authority).To(Equal(loaded[0].authority))
		g.Expect(c.kubeletClients).To(Equal(loaded[0].kubeletClients))
		g.Expect(c.frontProxy).To(Equal(loaded[0].frontProxy))
		g.Expect(c.signingKey).To(Equal(loaded[0].signingKey))
		g.Expect(c.server).To(Equal(loaded[0].server))
		g.Expect(c.platform).To(Equal(loaded[0].platform))
	}
	g.Expect(keyring.version).To(Equal(1), "the keys were stored once")
}

// alwaysChanged is a keyring that another host changes all the time.
type alwaysChanged struct{ *sharedKeys }

func (a alwaysChanged) Open(ctx context.Context, name string) (Keys, error) {
	keys, err := a.sharedKeys.Open(ctx, name)
	a.version++
	return keys, err
}

func TestKeysThatAlwaysChangeAreAnError(t *testing.T) {
	g := NewWithT(t)
	keyring := alwaysChanged{&sharedKeys{files: map[string][]byte{}}}
	_, err := loadCredentials(t.Context(), keyring, Spec{Name: "red"}.withDefaults(DefaultServiceCIDR), servingNames{dnsNames: []string{"a"}})
	g.Expect(err).To(MatchError(ErrKeysChanged))
	g.Expect(keyring.commits).To(Equal(commitAttempts))
	g.Expect(keyring.files).To(BeEmpty())
}

package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
)

// checksums is the file with the checksums of all others.
const checksums = "checksums.txt"

// Checksums writes the checksums of all files in a folder, as sha256sum does.
func Checksums(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, file := range files {
		if file.IsDir() || file.Name() == checksums {
			continue
		}
		sum, err := checksum(filepath.Join(dir, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, file.Name())
	}
	return os.WriteFile(filepath.Join(dir, checksums), []byte(lines.String()), archive.Readable)
}

func checksum(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }() // it is only read
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

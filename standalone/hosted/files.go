package hosted

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A PKI file holds a certificate together with its key, or a key alone, so that
// a crash cannot leave half of a pair behind.

// writeFile replaces a file atomically and durably.
func writeFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // has mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }() // fails after the rename
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	return wrapf(err, "write %s", path)
}

// splitPEM separates the certificates of a PEM file from its private key.
func splitPEM(data []byte) (certs, key []byte) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			key = append(key, pem.EncodeToMemory(block)...)
		} else {
			certs = append(certs, pem.EncodeToMemory(block)...)
		}
	}
	return certs, key
}

func joinPEM(certs, key []byte) []byte { return bytes.Join([][]byte{certs, key}, nil) }

// wrapf adds what was attempted to an error, and returns nil for nil.
func wrapf(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

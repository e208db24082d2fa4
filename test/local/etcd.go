package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"
)

// etcdTimeout is longer than any deletion takes.
const etcdTimeout = 30 * time.Second

// DeleteKeys simulates data loss: it deletes the keys with a prefix, such as "pods/",
// from the etcd of a control plane, behind its apiserver's back. A control
// plane has the name of its tenant's root namespace.
func (s *SuperCluster) DeleteKeys(ctx context.Context, controlPlane, prefix string) error {
	begin := []byte("/controlplanes/" + controlPlane + "/" + prefix)
	end := slices.Clone(begin)
	end[len(end)-1]++ // the first key after the prefix
	return s.etcd(ctx, "/etcdserverpb.KV/DeleteRange", message(begin, end))
}

// message encodes a Protocol Buffers message of byte fields, numbered from 1.
func message(fields ...[]byte) []byte {
	const lengthDelimited = 2
	var out []byte
	for i, field := range fields {
		out = append(out, byte(i+1)<<3|lengthDelimited)
		out = append(binary.AppendUvarint(out, uint64(len(field))), field...)
	}
	return out
}

// etcd calls a method of etcd's gRPC API. One HTTP/2 request does not justify a
// client library.
func (s *SuperCluster) etcd(ctx context.Context, method string, in []byte) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	transport := &http.Transport{
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.Dir, "etcd-tenants", "client.sock"))
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()

	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(in)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+method, bytes.NewReader(append(frame, in...)))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("call etcd: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("read etcd's response: %w", err)
	}
	for _, header := range []http.Header{answer.Trailer, answer.Header} {
		if status := header.Get("Grpc-Status"); status == "0" {
			return nil
		}
	}
	return fmt.Errorf("etcd rejected %s: HTTP %s, gRPC status %s: %s",
		method, answer.Status, answer.Trailer.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Message"))
}

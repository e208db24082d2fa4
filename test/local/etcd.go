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

// etcdTimeout is longer than any deletion.
const etcdTimeout = 30 * time.Second

// Lose deletes keys of one of the control planes from etcd behind its apiserver's back, as an accident would: those that begin with
// a prefix, such as "pods/". The control plane is named like its tenant's root namespace.
func (s *SuperCluster) Lose(ctx context.Context, controlPlane, prefix string) error {
	begin := []byte("/controlplanes/" + controlPlane + "/" + prefix)
	end := slices.Clone(begin)
	end[len(end)-1]++ // the first key without the prefix
	return s.etcd(ctx, "/etcdserverpb.KV/DeleteRange", message(begin, end))
}

// message is a message of byte fields (Protocol Buffers: Encoding), numbered from 1.
func message(fields ...[]byte) []byte {
	const lengthDelimited = 2
	var out []byte
	for i, field := range fields {
		out = append(out, byte(i+1)<<3|lengthDelimited)
		out = append(binary.AppendUvarint(out, uint64(len(field))), field...)
	}
	return out
}

// etcd calls one of etcd's methods. That is one HTTP/2 request (gRPC over HTTP2), for which no client library is worth its weight
// here.
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
		return fmt.Errorf("calling etcd: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return fmt.Errorf("reading etcd's answer: %w", err)
	}
	for _, header := range []http.Header{answer.Trailer, answer.Header} {
		if status := header.Get("Grpc-Status"); status == "0" {
			return nil
		}
	}
	return fmt.Errorf("etcd refused %s: HTTP %s, gRPC status %s: %s",
		method, answer.Status, answer.Trailer.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Message"))
}

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

	"google.golang.org/protobuf/encoding/protowire"
)

// etcdTimeout is longer than any deletion takes.
const etcdTimeout = 90 * time.Second

// frameHeader is what comes before each message of gRPC: a flag and the length.
const frameHeader = 5

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

// CountKeys returns how many keys of a control plane an etcd has, at a URL that a
// transport reaches by HTTP/2.
func CountKeys(ctx context.Context, transport http.RoundTripper, url, controlPlane string) (int64, error) {
	const countOnly, count = 9, 4 // fields of the request and of the response
	begin := []byte("/controlplanes/" + controlPlane + "/")
	end := slices.Clone(begin)
	end[len(end)-1]++
	in := protowire.AppendTag(message(begin, end), countOnly, protowire.VarintType)
	out, err := callEtcd(ctx, transport, url+"/etcdserverpb.KV/Range", protowire.AppendVarint(in, 1))
	for len(out) > 0 && err == nil {
		field, kind, tag := protowire.ConsumeTag(out)
		value := protowire.ConsumeFieldValue(field, kind, out[max(tag, 0):])
		if tag < 0 || value < 0 {
			return 0, protowire.ParseError(min(tag, value))
		}
		if field == count {
			number, _ := protowire.ConsumeVarint(out[tag:])
			return int64(number), nil
		}
		out = out[tag+value:]
	}
	return 0, err // a count of 0 is left out
}

// etcd calls a method of the etcd of the control planes.
func (s *SuperCluster) etcd(ctx context.Context, method string, in []byte) error {
	transport := &http.Transport{
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.Dir, "etcd-tenants", "client.sock"))
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	_, err := callEtcd(ctx, transport, "http://etcd"+method, in)
	return err
}

// callEtcd calls a method of etcd's gRPC API and returns the message of the
// response. One HTTP/2 request does not justify a client library.
func callEtcd(ctx context.Context, transport http.RoundTripper, url string, in []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(in)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(append(frame, in...)))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("call etcd: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	out, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read etcd's response: %w", err)
	}
	for _, header := range []http.Header{answer.Trailer, answer.Header} {
		if status := header.Get("Grpc-Status"); status == "0" {
			return out[min(frameHeader, len(out)):], nil
		}
	}
	return nil, fmt.Errorf("etcd rejected %s: HTTP %s, gRPC status %s: %s",
		url, answer.Status, answer.Trailer.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Message"))
}

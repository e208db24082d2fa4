package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// pageSize is the number of records that are read at once.
const pageSize = 500

// Sum identifies the records of a side, regardless of revisions.
type Sum struct {
	Records, Bytes int64
	Hash           [sha256.Size]byte
}

// Sum reads the records of a side, and returns a revision from which on it has
// read them. They are those of one moment if the side is sealed.
func (s Side) Sum(ctx context.Context) (sum Sum, revision int64, err error) {
	now, err := s.Client.Get(ctx, s.prefix(), clientv3.WithCountOnly())
	if err != nil {
		return Sum{}, 0, wrap(err, "read the data", s)
	}
	var all summing
	err = s.pages(ctx, func(_ context.Context, records []*mvccpb.KeyValue) error {
		for _, each := range records {
			all.add(each)
		}
		return nil
	})
	return all.Sum(), now.Header.Revision, wrap(err, "read the data", s)
}

// pages reads the records of a side as they are: a revision that takes long to
// read can be compacted meanwhile.
func (s Side) pages(ctx context.Context, receive func(context.Context, []*mvccpb.KeyValue) error) error {
	begin, end := s.prefix(), clientv3.GetPrefixRangeEnd(s.prefix())
	for {
		page, err := s.Client.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(pageSize))
		if err != nil {
			return err
		}
		if err := receive(ctx, page.Kvs); err != nil {
			return err
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		begin = string(slices.Concat(page.Kvs[len(page.Kvs)-1].Key, []byte{0})) // the next key
	}
}

// summing sums records in the order of their keys.
type summing struct {
	records, bytes int64
	hash           hash.Hash
}

func (s *summing) add(each *mvccpb.KeyValue) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.records++
	s.bytes += int64(len(each.Key) + len(each.Value))
	for _, part := range [][]byte{each.Key, each.Value} {
		s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		s.hash.Write(part)
	}
}

// Sum returns the sum of what was added.
func (s *summing) Sum() Sum {
	sum := Sum{Records: s.records, Bytes: s.bytes}
	if s.hash != nil {
		s.hash.Sum(sum.Hash[:0])
	}
	return sum
}

// String implements fmt.Stringer.
func (s Sum) String() string { return fmt.Sprintf("%d records, %d bytes", s.Records, s.Bytes) }

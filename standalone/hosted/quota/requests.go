package quota

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// write is a record that a request may write.
type write struct {
	key  []byte
	size int
}

// writesOf returns the records that a request to etcd may write: of the
// branches of a transaction, those of the larger one.
func writesOf(request any) []write {
	switch r := request.(type) {
	case *pb.PutRequest:
		return []write{{key: r.Key, size: len(r.Key) + len(r.Value)}}
	case *pb.TxnRequest:
		success, failure := writesOfAll(r.Success), writesOfAll(r.Failure)
		if total(failure) > total(success) {
			return failure
		}
		return success
	}
	return nil
}

func writesOfAll(operations []*pb.RequestOp) []write {
	var all []write
	for _, operation := range operations {
		switch {
		case operation.GetRequestPut() != nil:
			all = append(all, writesOf(operation.GetRequestPut())...)
		case operation.GetRequestTxn() != nil:
			all = append(all, writesOf(operation.GetRequestTxn())...)
		}
	}
	return all
}

func total(writes []write) int {
	sum := 0
	for _, w := range writes {
		sum += w.size
	}
	return sum
}

// revisionOf returns the revision that a request to etcd has created, zero if
// none.
func revisionOf(response any) int64 {
	switch r := response.(type) {
	case *pb.PutResponse:
		return r.GetHeader().GetRevision()
	case *pb.TxnResponse:
		if r.Succeeded {
			return r.GetHeader().GetRevision()
		}
	}
	return 0
}

package transfer

import (
	"encoding/json"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// decodeRecord returns the record in the result of a read; an empty one if there
// is none.
func decodeRecord(found []*mvccpb.KeyValue) (record, error) {
	if len(found) == 0 {
		return record{}, nil
	}
	var kept record
	if err := json.Unmarshal(found[0].Value, &kept); err != nil {
		return record{}, fmt.Errorf("decode %s: %w", found[0].Key, err)
	}
	return kept, nil
}

// revisionOf returns the revision of the record in the result of a read; 0 if
// there is none.
func revisionOf(found []*mvccpb.KeyValue) int64 {
	if len(found) == 0 {
		return 0
	}
	return found[0].ModRevision
}

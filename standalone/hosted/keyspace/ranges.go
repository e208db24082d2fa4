package keyspace

import (
	"bytes"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// afterSlash is the first key after those that begin with a slash.
const afterSlash = "0"

func checkOps(ops []clientv3.Op) error {
	errs := make([]error, 0, len(ops))
	for _, op := range ops {
		errs = append(errs, checkOp(op))
	}
	return errors.Join(errs...)
}

func checkOp(op clientv3.Op) error {
	if !op.IsTxn() {
		return checkRange(op.KeyBytes(), op.RangeBytes())
	}
	comparisons, thens, elses := op.Txn()
	errs := []error{checkOps(thens), checkOps(elses)}
	for _, c := range comparisons {
		errs = append(errs, checkRange(c.KeyBytes(), c.RangeEnd))
	}
	return errors.Join(errs...)
}

// checkRange returns an error if a range leaves the keys that begin with a
// slash. Below the prefix of tenant red, it would contain those of red1.
func checkRange(begin, end []byte) error {
	if !bytes.HasPrefix(begin, []byte("/")) {
		return fmt.Errorf("the key %q is of no tenant: it does not begin with a slash", begin)
	}
	endless := len(end) == 1 && end[0] == 0
	if endless || bytes.Compare(end, []byte(afterSlash)) > 0 {
		return fmt.Errorf("the range from %q to %q ends beyond the keys of a tenant", begin, end)
	}
	return nil
}

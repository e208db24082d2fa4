package guard

import "github.com/virtualcluster/virtualcluster/syncer/kinds"

// chances bounds the attempts of a write that may be rejected by chance. If the
// super cluster accepts one in eight, all of them fail for one write in 5000.
const chances = 64

// retryByChance writes a copy, and retries while the super cluster rejects a
// value that it chose randomly for the copy. A later attempt would have no
// better chance, and the tenant could not correct the rejection.
func retryByChance(k *kinds.Kind, write func() error) error {
	err := write()
	for n := 1; n < chances && err != nil && k.Down != nil && k.Down.ByChance(err); n++ {
		err = write()
	}
	return err
}

package guard

import "github.com/virtualcluster/virtualcluster/syncer/kinds"

// chances bounds how often a write is sent that may be rejected by chance. Where the
// super cluster accepts one in eight, all of them fail for one write in 5000.
const chances = 64

// untilChosen writes a copy, and repeats that while the super cluster rejects what it
// chose for the copy by chance. A later attempt would have no better odds, and the tenant
// could do nothing about the rejection.
func untilChosen(k *kinds.Kind, write func() error) error {
	err := write()
	for n := 1; n < chances && err != nil && k.Down != nil && k.Down.ByChance(err); n++ {
		err = write()
	}
	return err
}

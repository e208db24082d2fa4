package guard

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
	"github.com/virtualcluster/virtualcluster/syncer/translate"
)

func TestUntilChosen(t *testing.T) {
	errChosen, errFinal := errors.New("chosen by chance"), errors.New("final")
	chancy := kinds.Down[*corev1.Service]{ByChance: func(err error) bool { return errors.Is(err, errChosen) }}.Erase()
	tests := map[string]struct {
		kind    *kinds.Kind
		answers []error // the last is repeated
		want    error
		writes  int
	}{
		"accepted at once":               {chancy, []error{nil}, nil, 1},
		"accepted in the end":            {chancy, []error{errChosen, errChosen, nil}, nil, 3},
		"rejected for something else":    {chancy, []error{errChosen, errFinal}, errFinal, 2},
		"never accepted":                 {chancy, []error{errChosen}, errChosen, chances},
		"a kind without chance":          {kinds.Down[*corev1.Service]{}.Erase(), []error{errChosen}, errChosen, 1},
		"a kind that is not synced down": {&kinds.Kind{}, []error{errChosen}, errChosen, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			err := retryByChance(tt.kind, func() error {
				writes++
				return tt.answers[min(writes, len(tt.answers))-1]
			})
			if !errors.Is(err, tt.want) || writes != tt.writes {
				t.Errorf("%d writes end with %v, want %d and %v", writes, err, tt.writes, tt.want)
			}
		})
	}
}

// TestCurrentByDefault checks that copies of a kind without the hook Current
// are current.
func TestCurrentByDefault(t *testing.T) {
	if k := (kinds.Down[*corev1.Service]{}).Erase(); !k.Down.Current(translate.Tenant{}, &corev1.Service{}) {
		t.Error("a copy of a kind without Current is not current")
	}
}

package servingcert

import (
	"errors"
	"fmt"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Step is a step of the rotation of the authority, which an admin asks for with
// the annotation names.RotateCA of the Secret.
type Step string

// The steps, in their order.
const (
	// Start makes a successor, which clients are to trust.
	Start Step = "Start"
	// Switch has the successor sign.
	Switch Step = "Switch"
	// Finish ends the trust in authorities that have signed before.
	Finish Step = "Finish"
)

var errNotStarted = errors.New("there is no successor that clients trust: set it to Start first")

// check returns why the step cannot be taken.
func (s Step) check(a authorities) error {
	switch {
	case s == "", s == Start, s == Finish, s == Switch && a.hasSuccessor():
		return nil
	case s == Switch:
		return fmt.Errorf("annotation %s is %s: %w", names.RotateCA, s, errNotStarted)
	}
	return fmt.Errorf("annotation %s is %q: it must be %s, %s or %s", names.RotateCA, s, Start, Switch, Finish)
}

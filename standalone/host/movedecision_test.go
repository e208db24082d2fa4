package host

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		in   situation
		want step
	}{
		"where it is to be":                      {situation{at: "a", want: "a", connected: true}, serve},
		"to be moved":                            {situation{at: "a", want: "b", connected: true}, prepare},
		"to a store that is not connected":       {situation{at: "a", want: "b"}, serve},
		"after a failure":                        {situation{at: "a", want: "b", connected: true, deferred: true}, serve},
		"while the store is prepared":            {situation{at: "a", want: "b", connected: true, stage: preparing}, serve},
		"when it is prepared":                    {situation{at: "a", want: "b", connected: true, stage: prepared}, transferData},
		"prepared, and lost since":               {situation{at: "a", want: "b", stage: prepared}, serve},
		"while it is copied":                     {situation{at: "a", want: "b", connected: true, stopped: true, stage: transferring}, await},
		"copied, with a stale view of the store": {situation{at: "a", want: "b", stopped: true, stage: transferring}, await},
		"copied":                                 {situation{at: "b", want: "b", connected: true, stopped: true, stage: opened}, serve},
		"copied in vain":                         {situation{at: "a", want: "b", connected: true, stopped: true, stage: opened}, serve},
		"interrupted before the switch":          {situation{at: "a", want: "b", connected: true, stopped: true}, transferData},
		"interrupted after the switch":           {situation{at: "b", want: "b", connected: true, stopped: true}, reopen},
		"interrupted, and the store is lost":     {situation{at: "a", want: "b", stopped: true}, reopen},
		"interrupted, and failed here":           {situation{at: "a", want: "b", connected: true, stopped: true, deferred: true}, reopen},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(decide(test.in)).To(Equal(test.want)) })
	}
}

package sharedcrds

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtualcluster/virtualcluster/internal/names"
)

func TestNext(t *testing.T) {
	const m = "mark"
	// tenant returns the tenant's CRD with a mark, of generation 2.
	tenant := func(mark string) *crd {
		d := &crd{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 2}}
		if mark != "" {
			d.Labels = map[string]string{names.SharedCRD: mark}
		}
		return d
	}
	// in returns the record of that CRD in a phase, entered at a generation.
	in := func(p phase, generation int64) *record {
		return &record{Phase: p, UID: "uid", Mark: m, Generation: generation}
	}
	created := &record{Phase: creating, Mark: m}
	other := tenant(m)
	other.UID = "other"
	deleted := tenant(m)
	deleted.DeletionTimestamp = new(metav1.Now())
	tests := map[string]struct {
		o    observation
		want step
	}{
		"nothing is shared":                   {observation{}, nothing},
		"the tenant uses its own":             {observation{answer: UseLocal, found: tenant("")}, nothing},
		"a new copy":                          {observation{answer: UseSystem}, intend},
		"a copy to replace":                   {observation{answer: UseSystem, found: tenant("")}, keep},
		"a forged mark is the tenant's own":   {observation{answer: UseSystem, found: tenant("forged")}, keep},
		"one that is being deleted":           {observation{answer: UseSystem, found: deleted}, await},
		"creation":                            {observation{answer: UseSystem, record: created}, create},
		"creation that was interrupted":       {observation{answer: UseSystem, record: created, found: tenant(m)}, acknowledge},
		"the tenant was faster":               {observation{answer: UseSystem, record: created, found: tenant("")}, forget},
		"creation that is not wanted anymore": {observation{record: created}, forget},

		"a copy":                         {observation{answer: UseSystem, record: in(copied, 0), found: tenant(m)}, repair},
		"a copy that was adopted":        {observation{answer: UseSystem, record: in(copied, 0), found: tenant("")}, forget},
		"a forced copy without mark":     {observation{answer: UseSystem, forced: true, record: in(copied, 0), found: tenant("")}, repair},
		"a copy with another mark":       {observation{answer: UseSystem, record: in(copied, 0), found: tenant("forged")}, repair},
		"a copy that was deleted":        {observation{answer: UseSystem, record: in(copied, 0)}, forget},
		"a copy that is another's":       {observation{answer: UseSystem, record: in(copied, 0), found: other}, forget},
		"a recalled copy":                {observation{record: in(copied, 0), found: tenant(m)}, recall},
		"a copy that is closed":          {observation{record: in(closing, 0), found: tenant(m)}, shut},
		"a closed copy":                  {observation{record: in(closed, 0), found: tenant(m)}, deleteIfEmpty},
		"a recalled copy with objects":   {observation{record: in(left, 0), found: tenant("")}, unserve},
		"which an admin purges":          {observation{record: in(left, 0), found: tenant(m), purged: true}, purge},
		"one with objects is not purged": {observation{record: in(closed, 0), found: tenant(m), purged: true}, deleteIfEmpty},
		"a recalled copy is shared":      {observation{answer: UseSystem, record: in(left, 0), found: tenant(m)}, acknowledge},

		"kept aside":                            {observation{answer: UseSystem, record: in(keeping, 2), found: tenant("")}, replace},
		"kept aside, and equal to the copy":     {observation{answer: UseSystem, record: in(keeping, 2), found: tenant(""), asCopied: true}, replace},
		"changed by the tenant meanwhile":       {observation{answer: UseSystem, record: in(keeping, 1), found: tenant("")}, replace},
		"replaced, and then interrupted":        {observation{answer: UseSystem, record: in(keeping, 1), found: tenant(m)}, confirm},
		"replaced, and the mark removed":        {observation{answer: UseSystem, record: in(keeping, 1), found: tenant(""), asCopied: true}, confirm},
		"kept aside, but not replaced any more": {observation{answer: UseLocal, record: in(keeping, 2), found: tenant("")}, forget},
		"replaced":                              {observation{answer: UseSystem, record: in(replaced, 0), found: tenant("")}, repair},
		"replaced and deleted by the tenant":    {observation{answer: UseSystem, record: in(replaced, 0)}, forget},

		"restored":                      {observation{answer: UseLocal, record: in(replaced, 0), found: tenant(m)}, restore},
		"to be opened":                  {observation{answer: UseLocal, record: in(restoring, 0), found: tenant(m)}, reopen},
		"opened":                        {observation{answer: UseLocal, record: in(rewriting, 0), found: tenant(m)}, rewrite},
		"opened, without the mark":      {observation{answer: UseLocal, record: in(rewriting, 0), found: tenant("")}, rewrite},
		"rewritten":                     {observation{answer: UseLocal, record: in(rewriting, 0), found: tenant(m), trimmed: true}, finish},
		"the same versions":             {observation{answer: UseLocal, record: in(restoring, 0), found: tenant(m), trimmed: true}, finish},
		"replaced again":                {observation{answer: UseSystem, record: in(rewriting, 0), found: tenant(m)}, confirm},
		"finishing":                     {observation{answer: UseLocal, record: in(finishing, 2), found: tenant(m)}, exact},
		"finishing, without the mark":   {observation{answer: UseLocal, record: in(finishing, 2), found: tenant("")}, exact},
		"finished":                      {observation{answer: UseLocal, record: in(finishing, 1), found: tenant("")}, forget},
		"finished without a change":     {observation{answer: UseLocal, record: in(finishing, 2), found: tenant(""), asOwn: true}, forget},
		"finishing, changed by the way": {observation{answer: UseLocal, record: in(finishing, 1), found: tenant(m)}, restore},
		"finishing, replaced again":     {observation{answer: UseSystem, record: in(finishing, 2), found: tenant(m)}, confirm},
		"finished, replaced again":      {observation{answer: UseSystem, record: in(finishing, 1), found: tenant("")}, forget},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := next(tt.o); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

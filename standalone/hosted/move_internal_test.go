package hosted

import (
	"testing"

	. "github.com/onsi/gomega"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestRoomOf(t *testing.T) {
	const limit = 1000 << 20
	for name, test := range map[string]struct {
		status pb.StatusResponse
		want   int64
		why    string
	}{
		"an empty one":          {pb.StatusResponse{}, limit / 100 * capacityPercent, ""},
		"one in use":            {pb.StatusResponse{DbSize: 500 << 20, DbSizeInUse: 100 << 20}, limit/100*capacityPercent - 100<<20, ""},
		"one at its capacity":   {pb.StatusResponse{DbSize: 700 << 20, DbSizeInUse: 600 << 20}, 0, "it has 600 MiB, and takes 60 % of 1000 MiB"},
		"one with a large file": {pb.StatusResponse{DbSize: 960 << 20, DbSizeInUse: 100 << 20}, 0, "defragment"},
		"one with an alarm":     {pb.StatusResponse{Errors: []string{"alarm:NOSPACE"}}, 0, "etcd reports: alarm:NOSPACE"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			room, err := roomOf((*clientv3.StatusResponse)(&test.status), limit)
			g.Expect(room).To(Equal(test.want))
			if test.why == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			var noRoom *NoRoomError
			g.Expect(err).To(And(BeAssignableToTypeOf(noRoom), MatchError(ContainSubstring(test.why))))
		})
	}
}

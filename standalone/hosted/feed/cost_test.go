package feed

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// BenchmarkDispatch tells what a change costs that has no subscriber, in a
// tenant that has none and in one that has others, and what one costs that has.
func BenchmarkDispatch(b *testing.B) {
	value := make([]byte, 4096)
	for name, subscribed := range map[string]string{"no subscriber": "", "another resource": "secrets", "a subscriber": "pods"} {
		b.Run(name, func(b *testing.B) {
			f := &Feed{subscribers: map[string]map[string][]*Subscription{}}
			if subscribed != "" {
				s, err := f.Subscribe("red", subscribed, func() {})
				if err != nil {
					b.Fatal(err)
				}
				s.lost = false
			}
			events := []mvccpb.Event{{Kv: &mvccpb.KeyValue{
				Key: []byte(keyspace.Prefix("red") + "/pods/team/web-5d8f7b6c9-x2x7k"), Value: value, CreateRevision: 1, ModRevision: 2,
			}}}
			b.ReportAllocs()
			for b.Loop() {
				f.dispatch(events)
			}
		})
	}
}

// Package feedtest starts etcds with feeds for tests, and stores objects in
// them.
package feedtest

import (
	"context"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// Store is an etcd with a feed that runs. Its methods end the test if they
// fail.
type Store struct {
	Feed   *feed.Feed
	Client *clientv3.Client
	// Stop stops the feed, at the end of the test at the latest.
	Stop func()

	tb testing.TB
}

// Start starts an etcd and its feed until the test has ended.
func Start(tb testing.TB) *Store {
	tb.Helper()
	kv, client := etcdtest.Start(tb)
	ctx, cancel := context.WithCancel(context.Background())
	source, err := feed.New(ctx, feed.Embedded(kv))
	if err != nil {
		cancel()
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)
	return &Store{Feed: source, Client: client, Stop: stop, tb: tb}
}

// Put stores an object as an apiserver does, and returns the revision.
func (s *Store) Put(tenant, resource string, object runtime.Object) int64 {
	s.tb.Helper()
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	if err != nil {
		s.tb.Fatal(err)
	}
	return s.Write(tenant, resource, NameOf(object), Encode(s.tb, object, kinds[0].GroupVersion()))
}

// Write stores a record, and returns the revision.
func (s *Store) Write(tenant, resource, name string, value []byte) int64 {
	s.tb.Helper()
	response, err := s.Client.Put(context.Background(), s.key(tenant, resource, name), string(value))
	if err != nil {
		s.tb.Fatal(err)
	}
	return response.Header.Revision
}

// Remove deletes a record of the tenant "red".
func (s *Store) Remove(resource, name string) {
	s.tb.Helper()
	if _, err := s.Client.Delete(context.Background(), s.key("red", resource, name)); err != nil {
		s.tb.Fatal(err)
	}
}

func (s *Store) key(tenant, resource, name string) string {
	prefix, err := keyspace.RecordPrefix(tenant, resource)
	if err != nil {
		s.tb.Fatal(err)
	}
	return prefix + name
}

// Encode returns an object as an apiserver stores it, in a version.
func Encode(tb testing.TB, object runtime.Object, version schema.GroupVersion) []byte {
	tb.Helper()
	serializer := protobuf.NewSerializer(legacyscheme.Scheme, legacyscheme.Scheme)
	value, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(serializer, version), object)
	if err != nil {
		tb.Fatal(err)
	}
	return value
}

// NameOf returns the name of an object, with its namespace before it if it has
// one: team/web.
func NameOf(object any) string { return cache.MetaObjectToName(object.(metav1.Object)).String() }

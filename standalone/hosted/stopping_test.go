package hosted

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// emptyKV is an etcd without keys.
type emptyKV struct{ pb.UnimplementedKVServer }

func (*emptyKV) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{}}, nil
}

// TestAStoppingEtcd: a client reads at the next etcd what one that stops does not
// respond to. Its writes fail, since etcd is unavailable.
func TestAStoppingEtcd(t *testing.T) {
	g := NewWithT(t)
	stopped, next := grpc.NewServer(), grpc.NewServer()
	stopped.Stop()
	defer next.Stop()
	pb.RegisterKVServer(next, &emptyKV{})
	var unanswered atomic.Int32
	server := &http.Server{Protocols: &http.Protocols{}, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if unanswered.Add(-1) >= 0 {
			stopped.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})}
	server.Protocols.SetUnencryptedHTTP2(true)
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: loopback})
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	client, err := clientv3.New(clientv3.Config{
		Context: t.Context(), Endpoints: []string{"http://" + listener.Addr().String()},
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(explainStopping)},
	})
	g.Expect(err).NotTo(HaveOccurred())
	defer client.Close()

	unanswered.Store(2)
	_, err = client.Get(t.Context(), "key")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unanswered.Load()).To(BeNumerically("<", 0))
	unanswered.Store(1)
	_, err = client.Put(t.Context(), "key", "value")
	g.Expect(codeOf(err)).To(Equal(codes.Unavailable))
	_, err = client.Put(t.Context(), "key", "value")
	g.Expect(codeOf(err)).To(Equal(codes.Unimplemented), "other errors stay")
}

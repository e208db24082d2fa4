package hosted

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// explainStopping is an interceptor for the clients of an etcd. An etcd that stops
// leaves a request that it has not begun without a response, of which its HTTP
// server makes an empty one with the status 200. gRPC has no code for that. With
// Unavailable, the client sends reads again.
func explainStopping(
	ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, response, conn, opts...)
	if status.Code(err) == codes.Unknown && strings.Contains(status.Convert(err).Message(), "missing HTTP content-type") {
		return status.Error(codes.Unavailable, "etcd is stopping")
	}
	return err
}

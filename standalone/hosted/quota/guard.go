package quota

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// rejectedBy begins the message of a rejection; the reason follows.
const rejectedBy = "rejected by "

// Guard returns an interceptor for an etcd that rejects writes beyond a limit.
func Guard(ledger *Ledger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (response any, err error) {
		headers, _ := metadata.FromIncomingContext(ctx)
		err = admit(ledger, request, headers, func() (any, error) {
			response, err = handle(ctx, request)
			return response, err
		})
		return response, err
	}
}

// GuardClient returns an interceptor for the clients of an etcd whose server
// has no [Guard].
func GuardClient(ledger *Ledger) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, response any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		headers, _ := metadata.FromOutgoingContext(ctx)
		return admit(ledger, request, headers, func() (any, error) {
			return response, invoke(ctx, method, request, response, conn, opts...)
		})
	}
}

// admit calls a function that performs a request, unless the request exceeds a
// limit.
func admit(ledger *Ledger, request any, headers metadata.MD, perform func() (response any, err error)) error {
	writes := writesOf(request)
	if len(writes) == 0 {
		_, err := perform()
		return err
	}
	settle, reason, err := ledger.reserve(writes, purposeOf(headers), time.Now())
	if err != nil {
		return status.Error(codes.ResourceExhausted, rejectedBy+string(reason)+": "+err.Error())
	}
	response, err := perform()
	if err != nil {
		settle(0)
		return err
	}
	settle(revisionOf(response))
	return nil
}

// Rejection returns why a guard has rejected a write, parsed from the error
// message of etcd's client.
func Rejection(message string) (reason Reason, text string, ok bool) {
	_, rest, ok := strings.Cut(message, rejectedBy)
	if !ok {
		return "", "", false
	}
	word, text, ok := strings.Cut(rest, ": ")
	return Reason(word), text, ok
}

package quota

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// rejectedBy begins the message of a rejection; the reason follows.
const rejectedBy = "rejected by "

// Guard returns an interceptor for etcd that rejects writes beyond a limit.
func Guard(ledger *Ledger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		writes := writesOf(request)
		if len(writes) == 0 {
			return handle(ctx, request)
		}
		settle, reason, err := ledger.reserve(writes, purposeOf(ctx), time.Now())
		if err != nil {
			return nil, status.Error(codes.ResourceExhausted, rejectedBy+string(reason)+": "+err.Error())
		}
		response, err := handle(ctx, request)
		if err != nil {
			settle(0)
			return response, err
		}
		settle(revisionOf(response))
		return response, nil
	}
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

package hosted

import (
	"context"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"
)

const (
	attemptsRoot    = "/failed-starts/"
	attemptsTimeout = 2 * time.Second
)

// attempts counts the starts of a control plane that did not make it ready. The
// count is in the store: it survives the process, which such a start may crash,
// and the next host reads it. It only orders starts, so that errors are logged.
type attempts struct {
	client clientv3.KV
	key    string
}

func attemptsIn(client clientv3.KV, name string) attempts {
	return attempts{client, attemptsRoot + name}
}

// count returns the number so far. A value that is not a number counts as one.
func (a attempts) count(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, attemptsTimeout)
	defer cancel()
	response, err := a.client.Get(ctx, a.key)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot read how many starts have failed")
		return 0
	}
	if len(response.Kvs) == 0 {
		return 0
	}
	number, err := strconv.Atoi(string(response.Kvs[0].Value))
	if err != nil || number < 1 {
		return 1
	}
	return number
}

// begin counts a start as failed until forget is called.
func (a attempts) begin(ctx context.Context, before int) {
	ctx, cancel := context.WithTimeout(ctx, attemptsTimeout)
	defer cancel()
	if _, err := a.client.Put(ctx, a.key, strconv.Itoa(before+1)); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot count a start")
	}
}

// forget resets the count, after a start that has succeeded or was stopped.
func (a attempts) forget(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), attemptsTimeout)
	defer cancel()
	if _, err := a.client.Delete(ctx, a.key); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot reset the count of failed starts")
	}
}

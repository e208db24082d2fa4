package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

// batch is the number of requests after which the other server has its turn, so
// that disturbances of the machine affect both.
const batch = 50

// server is an apiserver to which requests are sent, one after the other.
type server struct {
	name   string
	client kubernetes.Interface
	// times has the latencies by operation.
	times map[string][]time.Duration
}

// operation sends the request with a number.
type operation struct {
	name string
	send func(ctx context.Context, client kubernetes.Interface, n int) error
}

func operations() []operation {
	return []operation{
		{"get", func(ctx context.Context, client kubernetes.Interface, _ int) error {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, podName(0), metav1.GetOptions{})
			return err
		}},
		{"list", func(ctx context.Context, client kubernetes.Interface, _ int) error {
			_, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			return err
		}},
		{"create", func(ctx context.Context, client kubernetes.Interface, n int) error {
			_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("config-%d", n)}, Data: map[string]string{"key": "value"},
			}, metav1.CreateOptions{})
			return err
		}},
	}
}

// measureRequests measures the same requests to a hosted apiserver and to
// upstream's as a process of its own.
func measureRequests(ctx context.Context, opts *options, dir string, t *table) error {
	upstreamDir := filepath.Join(dir, "upstream")
	if err := os.Mkdir(upstreamDir, 0o700); err != nil {
		return err
	}
	host, endHost, err := startHost(ctx, opts, filepath.Join(dir, "host"))
	if err != nil {
		return err
	}
	defer endHost()
	planes, err := host.run(ctx, "tenant")
	if err != nil {
		return err
	}
	upstream, endUpstream, err := startUpstream(ctx, upstreamDir)
	if err != nil {
		return err
	}
	defer endUpstream()
	hosted, err := newServer(ctx, opts.isolation, planes[0], opts.pods)
	if err != nil {
		return err
	}
	alone, err := newServer(ctx, "kube-apiserver", upstream, opts.pods)
	if err != nil {
		return err
	}
	servers := []*server{hosted, alone}
	if err := sendAll(ctx, servers, opts.requests); err != nil {
		return err
	}
	reportRequests(t, opts, servers)
	return nil
}

// newServer creates the pods in an apiserver.
func newServer(ctx context.Context, name string, config *rest.Config, pods int) (*server, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := &server{name: name, client: client, times: map[string][]time.Duration{}}
	if err := s.prepare(ctx, pods); err != nil {
		return nil, fmt.Errorf("create %d pods in %s: %w", pods, name, err)
	}
	return s, nil
}

// prepare creates the pods.
func (s *server) prepare(ctx context.Context, pods int) error {
	// kube-apiserver has no controller that creates it.
	_, err := s.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for n := range pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: podName(n), Labels: map[string]string{"app": web}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: web, Image: "web.example/web:1"}}},
		}
		// The admission plugin reads service accounts from an informer.
		if err := until(ctx, poll, "a pod is created", func() (bool, error) {
			_, err := s.client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	return nil
}

func podName(n int) string { return fmt.Sprintf("pod-%d", n) }

// sendAll sends the requests of each operation, in batches to each server.
func sendAll(ctx context.Context, servers []*server, requests int) error {
	for _, op := range operations() {
		for first := 0; first < requests; first += batch {
			for _, s := range servers {
				for n := first; n < min(first+batch, requests); n++ {
					begin := time.Now()
					if err := op.send(ctx, s.client, n); err != nil {
						return fmt.Errorf("%s of %s: %w", op.name, s.name, err)
					}
					s.times[op.name] = append(s.times[op.name], time.Since(begin))
				}
			}
		}
	}
	return nil
}

func reportRequests(t *table, opts *options, servers []*server) {
	for _, op := range operations() {
		name := op.name
		if name == "list" {
			name = fmt.Sprintf("list of %d pods", opts.pods)
		}
		for _, p := range []int{50, 99} {
			for _, s := range servers {
				times := slices.Sorted(slices.Values(s.times[op.name]))
				t.add(fmt.Sprintf("p%d of a %s, %s", p, name, s.name), "ms", measure.Milliseconds(measure.Percentile(times, p)))
			}
		}
	}
}

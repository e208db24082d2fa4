package bench

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
)

const (
	// web is the name of what the pods of a tenant belong to.
	web = "web"
	// podsOfAwake is the number of running pods of a tenant that is awake.
	podsOfAwake = 5
	// podsOfNode is how many pods a simulated node runs.
	podsOfNode = 1000
	// idleSeconds is the shortest time after which a tenant can sleep.
	idleSeconds = 10
	// group is the number of tenants that are created at once.
	group = 20
	// rangePrefix is the prefix of a tenant's Service addresses, of which the
	// default pool has enough for 10,000 tenants.
	rangePrefix = 25
	// stage is the number of tenants that sleep after which the memory is
	// measured.
	stage = 1000
	// mibInGiB is the number of MiB in a GiB.
	mibInGiB = 1024
)

// measureScale measures a vc-standalone, with super cluster, manager and
// syncer, that has many tenants: some awake with pods, and then more that
// sleep.
func measureScale(ctx context.Context, opts *options, dir string, t *table) error {
	nodes := 1 + podsOfAwake*opts.awake/podsOfNode
	s, end, err := startStandalone(ctx, opts, dir, "--nodes", strconv.Itoa(nodes), "--service-cidr-prefix", strconv.Itoa(rangePrefix))
	if err != nil {
		return err
	}
	defer end()
	awake := make([]*rest.Config, 0, opts.awake)
	for chunk := range slices.Chunk(planeNames(opts.awake), group) {
		configs, err := s.createUsed(ctx, chunk)
		if err != nil {
			return err
		}
		awake = append(awake, configs...)
	}
	of := fmt.Sprintf("%d %s tenants awake with %d pods each", opts.awake, opts.isolation, podsOfAwake)
	before, err := s.memory(ctx, opts.settle)
	if err != nil {
		return err
	}
	t.add("memory of vc-standalone with "+of, "GiB", before/mibInGiB)
	if err := s.reportScale(ctx, opts, awake, of, t); err != nil {
		return err
	}
	if err := s.addAsleep(ctx, opts, before, of, t); err != nil {
		return err
	}
	return s.reportScale(ctx, opts, awake, fmt.Sprintf("%s and %d asleep", of, opts.asleep), t)
}

// addAsleep creates the tenants that sleep in stages, and adds how long each
// stage takes and what the process takes after it.
func (s *standalone) addAsleep(ctx context.Context, opts *options, before float64, of string, t *table) error {
	asleep := make([]string, opts.asleep)
	for i := range asleep {
		asleep[i] = fmt.Sprintf("asleep-%d", i)
	}
	created, after := 0, before
	for chunk := range slices.Chunk(asleep, stage) {
		begin := time.Now()
		if err := s.createAsleep(ctx, chunk); err != nil {
			return err
		}
		t.add(fmt.Sprintf("time until %d more tenants sleep", len(chunk)), "s", time.Since(begin).Seconds())
		var err error
		if after, err = s.memory(ctx, opts.settle); err != nil {
			return err
		}
		created += len(chunk)
		t.add(fmt.Sprintf("memory of vc-standalone with %s and %d asleep", of, created), "GiB", after/mibInGiB)
	}
	t.add("memory of vc-standalone for a tenant that sleeps, beside "+of, "KiB", kibInMiB*(after-before)/float64(created))
	return nil
}

// reportScale adds the CPU that the process takes, and how long kubectl get
// takes.
func (s *standalone) reportScale(ctx context.Context, opts *options, awake []*rest.Config, of string, t *table) error {
	before, err := measure.UsageOf(s.pid)
	if err != nil {
		return err
	}
	select {
	case <-time.After(opts.idle):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	after, err := measure.UsageOf(s.pid)
	if err != nil {
		return err
	}
	times := make([]time.Duration, 0, len(awake))
	for _, config := range awake {
		took, err := getPods(ctx, config)
		if err != nil {
			return err
		}
		times = append(times, took)
	}
	slices.Sort(times)
	t.add("CPU of vc-standalone with "+of, "% of a core", 100*float64(after.CPU-before.CPU)/float64(opts.idle))
	for _, p := range []int{50, 99, 100} {
		t.add(fmt.Sprintf("p%d of kubectl get pods with %s", p, of), "ms", measure.Milliseconds(measure.Percentile(times, p)))
	}
	return nil
}

// createUsed creates VirtualClusters with running pods, and returns the
// configurations of their admins.
func (s *standalone) createUsed(ctx context.Context, virtualClusters []string) ([]*rest.Config, error) {
	if err := s.createReady(ctx, virtualClusters...); err != nil {
		return nil, err
	}
	configs := make([]*rest.Config, len(virtualClusters))
	working, ctx := errgroup.WithContext(ctx)
	for i, name := range virtualClusters {
		working.Go(func() (err error) {
			if configs[i], err = s.adminConfig(ctx, name); err != nil {
				return err
			}
			return runPods(ctx, configs[i])
		})
	}
	return configs, working.Wait()
}

// adminConfig returns the configuration of a tenant's admin.
func (s *standalone) adminConfig(ctx context.Context, name string) (*rest.Config, error) {
	vc := virtualCluster(name)
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(vc), vc); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: vc.Status.ClusterNamespace, Name: names.AdminKubeconfigSecret}
	if err := s.client.Get(ctx, key, secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[names.AdminKubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", name, err)
	}
	config.QPS = -1
	return config, nil
}

// runPods runs pods, and waits until they have started.
func runPods(ctx context.Context, config *rest.Config) error {
	return withOwnConnection(config, func(client kubernetes.Interface) error {
		labels := map[string]string{"app": web}
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: web},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(podsOfAwake)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: web, Image: "web.example/web:1"}}},
				},
			},
		}
		deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)
		if _, err := deployments.Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
			return err
		}
		return until(ctx, poll, "the pods run", func() (bool, error) {
			found, err := deployments.Get(ctx, deployment.Name, metav1.GetOptions{})
			return err == nil && found.Status.AvailableReplicas == podsOfAwake, err
		})
	})
}

// createAsleep creates VirtualClusters, and waits until they sleep. The next
// ones are created once the ones before are ready, so that none waits for long.
func (s *standalone) createAsleep(ctx context.Context, virtualClusters []string) error {
	ready := hasCondition(tenancyv1alpha1.ConditionReady, metav1.ConditionTrue)
	sleeps := hasCondition(tenancyv1alpha1.ConditionAwake, metav1.ConditionFalse)
	for chunk := range slices.Chunk(virtualClusters, group) {
		for _, name := range chunk {
			vc := virtualCluster(name)
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{
				Sleep: &tenancyv1alpha1.SleepSpec{AfterIdleSeconds: new(int32(idleSeconds))},
			}
			if err := s.client.Create(ctx, vc); err != nil {
				return err
			}
		}
		if err := s.await(ctx, "ready or asleep", either(ready, sleeps), chunk...); err != nil {
			return err
		}
	}
	return s.await(ctx, "asleep", sleeps, virtualClusters...)
}

// getPods returns how long the requests of kubectl get pods take, without the
// start of kubectl: a connection, discovery and a list.
func getPods(ctx context.Context, config *rest.Config) (took time.Duration, err error) {
	begin := time.Now()
	err = withOwnConnection(config, func(client kubernetes.Interface) error {
		if _, err := client.Discovery().ServerGroups(); err != nil {
			return err
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) != podsOfAwake {
			return fmt.Errorf("a tenant lists %d pods instead of %d", len(pods.Items), podsOfAwake)
		}
		return err
	})
	return time.Since(begin), err
}

// withOwnConnection calls do with a client that shares no connection with
// another one.
func withOwnConnection(config *rest.Config, do func(kubernetes.Interface) error) error {
	config = rest.CopyConfig(config)
	config.Dial = (&net.Dialer{}).DialContext
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer httpClient.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return err
	}
	return do(client)
}

package networks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	closed, open, ranged = "closed", "open", "ranged"

	agnhost = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	// Ports of a pod, and of its Service.
	podTCP, podUDP         = 8080, 8081
	serviceTCP, serviceUDP = 80, 81
	// together is how many connections are tried at a time.
	together = 32
)

// member is a pod that serves and connects, and its Service.
type member struct {
	tenant             *local.Tenant
	network, namespace string
	pod                *corev1.Pod
	service            *corev1.Service
}

// String returns where the member is.
func (m *member) String() string {
	return fmt.Sprintf("%s/%s/%s", m.tenant.VC.Name, m.network, m.namespace)
}

// join creates a pod in a network and a namespace, and its Service.
func join(ctx context.Context, t *local.Tenant, network, namespace string) *member {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "in-" + network, Labels: map[string]string{networkv1.Label: network, "app": network}}
	m := &member{tenant: t, network: network, namespace: namespace}
	m.pod = &corev1.Pod{ObjectMeta: *meta.DeepCopy(), Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []corev1.Container{{
			Name: "main", Image: agnhost, Args: []string{"netexec", fmt.Sprint("--http-port=", podTCP), fmt.Sprint("--udp-port=", podUDP)},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt32(podTCP)}},
				PeriodSeconds: 1,
			},
		}},
	}}
	m.service = &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": network},
		Ports: []corev1.ServicePort{
			{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: serviceTCP, TargetPort: intstr.FromInt32(podTCP)},
			{Name: "udp", Protocol: corev1.ProtocolUDP, Port: serviceUDP, TargetPort: intstr.FromInt32(podUDP)},
		},
	}}
	Expect(t.Client.Create(ctx, m.pod)).To(Succeed())
	Expect(t.Client.Create(ctx, m.service)).To(Succeed())
	return m
}

// shouldRun waits until a member's pod is ready.
func (m *member) shouldRun(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega, ctx context.Context) {
		g.Expect(m.tenant.Client.Get(ctx, client.ObjectKeyFromObject(m.pod), m.pod)).To(Succeed())
		g.Expect(m.pod.Status.ContainerStatuses).To(And(HaveLen(1), HaveEach(HaveField("Ready", true))), m.String())
	}).WithContext(ctx).Should(Succeed())
}

// newNamespace creates a namespace in a tenant in which pods can be created.
func newNamespace(ctx context.Context, t *local.Tenant, name string) {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(t.Client.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(t.Client.Delete(ctx, ns))).To(Succeed()) })
	key := client.ObjectKey{Namespace: name, Name: "default"}
	Eventually(t.Client.Get).WithContext(ctx).WithArguments(key, &corev1.ServiceAccount{}).Should(Succeed())
}

// endpoint is one way to reach something.
type endpoint struct {
	by, protocol string // http or udp
	host         string
	port         int32
}

// endpoints returns the ways to reach a member.
func (m *member) endpoints(node string) []endpoint {
	ports := m.service.Spec.Ports
	return []endpoint{
		{"pod IP", "http", m.pod.Status.PodIP, podTCP}, {"pod IP", "udp", m.pod.Status.PodIP, podUDP},
		{"Service IP", "http", m.service.Spec.ClusterIP, serviceTCP}, {"Service IP", "udp", m.service.Spec.ClusterIP, serviceUDP},
		{"node port", "http", node, ports[0].NodePort}, {"node port", "udp", node, ports[1].NodePort},
	}
}

// cell is one connection of a table.
type cell struct {
	from   *member
	target string
	to     endpoint
	// reached is whether the connection should be made.
	reached bool
}

// String returns what connects to what.
func (c cell) String() string {
	return fmt.Sprintf("%s to %s by %s, %s", c.from, c.target, c.to.by, c.to.protocol)
}

// attempt is what a pod got when it connected.
type attempt struct {
	Responses []string `json:"responses"`
	Errors    []string `json:"errors"`
}

// reaches has the pod of a member connect, and reports whether it gets an answer.
func (m *member) reaches(ctx context.Context, to endpoint) (bool, error) {
	got, err := m.connect(ctx, to)
	return strings.Join(got.Responses, "") != "", err
}

// connect has the pod of a member connect.
func (m *member) connect(ctx context.Context, to endpoint) (got attempt, err error) {
	query := url.Values{
		"host": {to.host}, "port": {fmt.Sprint(to.port)}, "protocol": {to.protocol}, "request": {"hostname"}, "tries": {"1"},
	}
	at := url.URL{Scheme: "http", Host: net.JoinHostPort(m.pod.Status.PodIP, fmt.Sprint(podTCP)), Path: "/dial", RawQuery: query.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return got, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return got, fmt.Errorf("ask %s to connect: %w", m, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode == http.StatusBadRequest { // the name is not known
		return attempt{Errors: []string{string(data)}}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		return got, fmt.Errorf("read what %s got: %w", m, err)
	}
	return got, nil
}

// differing tries all connections, and returns those that are not as they should
// be.
func differing(cells []cell) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var (
			mu     sync.Mutex
			found  = []string{}
			failed error
			trying sync.WaitGroup
			slots  = make(chan struct{}, together)
		)
		for _, c := range cells {
			slots <- struct{}{}
			trying.Go(func() {
				defer func() { <-slots }()
				reached, err := c.from.reaches(ctx, c.to)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = err
				} else if reached != c.reached {
					found = append(found, c.String())
				}
			})
		}
		trying.Wait()
		return found, failed
	}
}

// those returns the cells that should be reached, or those that should not.
func those(cells []cell, reached bool) []cell {
	var some []cell
	for _, c := range cells {
		if c.reached == reached {
			some = append(some, c)
		}
	}
	return some
}

package escapes

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/nesting/nestingtest"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// All hosted control planes share a process. Mallory has low limits, so that an
// attack reaches them soon; alice has the host's.
var _ = Describe("The requests of hosted control planes", func() {
	inBothChains(attackWithRequests)
})

// attackWithRequests declares the attacks on control planes of an isolation.
func attackWithRequests(isolation tenancyv1alpha1.Isolation, where string) {
	const (
		ns = "requests"
		// fewest is the lowest limit of reads and writes in flight, and
		// fewestWatches that of watches.
		fewest, fewestWatches = 10, 100
		writesPerSecond       = 20
		writeBurst            = 10 * writesPerSecond
	)
	var (
		mallory, alice *local.Tenant
		sender         *http.Client
		works          int
	)

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.ControlPlane = &tenancyv1alpha1.ControlPlaneSpec{Isolation: isolation, Limits: &tenancyv1alpha1.ControlPlaneLimits{
				ConcurrentReads: new(int32(fewest)), ConcurrentWrites: new(int32(fewest)), ConcurrentWatches: new(int32(fewestWatches)),
				WritesPerSecond: new(int32(writesPerSecond)),
			}}
		})
		alice = tenant(ctx, kit.WithIsolation(isolation))
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
		kit.Create(ctx, alice.Client, kit.Namespace(ns))
		var err error
		sender, err = rest.HTTPClientFor(mallory.Config)
		Expect(err).NotTo(HaveOccurred())
	})

	// aliceWorks asserts that another tenant writes, reads and watches.
	aliceWorks := func(ctx context.Context) {
		GinkgoHelper()
		works++
		shouldSync(ctx, alice, ns, fmt.Sprintf("works-%d", works))
	}
	// open sends a request whose response is not read to its end.
	open := func(ctx context.Context, method, path, mediaType string, body io.Reader) (*http.Response, error) {
		r, err := http.NewRequestWithContext(ctx, method, mallory.Config.Host+path, body)
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", mediaType)
		return sender.Do(r)
	}

	attack("more watches than a tenant may have"+where, "idea: each watch is a goroutine and a buffer in a shared process", func(ctx SpecContext) {
		watching, end := context.WithCancel(ctx)
		defer end()
		codes := map[int]int{}
		for range fewestWatches + fewest {
			response, err := open(watching, http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps?watch=1", "", nil)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(response.Body.Close)
			codes[response.StatusCode]++
			if response.StatusCode == http.StatusTooManyRequests {
				Expect(response.Header.Get("Retry-After")).NotTo(BeEmpty())
			}
		}
		Expect(codes).To(And(HaveLen(2), HaveKeyWithValue(http.StatusTooManyRequests, BeNumerically(">=", fewest))))
		impostor := rest.CopyConfig(mallory.Config)
		impostor.Impersonate = rest.ImpersonationConfig{UserName: "vc-platform", Groups: []string{"system:masters"}}
		code, _ := request(ctx, impostor, http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps?watch=1&timeoutSeconds=1", nil)
		Expect(code).To(Equal(http.StatusTooManyRequests), "only the platform's key exempts from limits")
		aliceWorks(ctx)
		shouldBeThrottled(ctx, mallory, "the kind watch were in flight than the limit of 100")
		end()
		Eventually(func(g Gomega) {
			response, err := open(ctx, http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps?watch=1&timeoutSeconds=1", "", nil)
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = response.Body.Close() }()
			g.Expect(response.StatusCode).To(Equal(http.StatusOK), "when the others have ended")
		}).Should(Succeed())
	})

	attack("a thousand connections that send nothing"+where, "slow-loris attacks: any client can open a connection", func(ctx SpecContext) {
		server, err := url.Parse(alice.Config.Host)
		Expect(err).NotTo(HaveOccurred())
		dialer := &tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{ServerName: alice.Config.ServerName, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}
		for i := range 1000 {
			var conn net.Conn
			if i%2 == 0 {
				conn, err = dialer.DialContext(ctx, "tcp", server.Host)
			} else {
				conn, err = dialer.NetDialer.DialContext(ctx, "tcp", server.Host) // without a handshake
			}
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { _ = conn.Close() })
		}
		fresh := rest.CopyConfig(alice.Config)
		fresh.Dial = (&net.Dialer{}).DialContext // a connection of its own
		code, _ := request(ctx, fresh, http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps", nil)
		Expect(code).To(Equal(http.StatusOK))
		aliceWorks(ctx)
	})

	// hold sends writes whose bodies do not end until the context ends. A negative
	// length is not declared.
	hold := func(ctx context.Context, writes int, length int64) {
		GinkgoHelper()
		holding, end := context.WithCancel(ctx)
		var work sync.WaitGroup
		DeferCleanup(func() { end(); work.Wait() })
		for range writes {
			body, pen := io.Pipe()
			r, err := http.NewRequestWithContext(holding, http.MethodPost, mallory.Config.Host+"/api/v1/namespaces/"+ns+"/configmaps", body)
			Expect(err).NotTo(HaveOccurred())
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = length
			work.Go(func() {
				if response, err := sender.Do(r); err == nil {
					_ = response.Body.Close()
				}
			})
			work.Go(func() {
				_, _ = pen.Write([]byte(`{"data":{"x":"`))
				<-holding.Done()
				_ = pen.CloseWithError(holding.Err())
			})
		}
	}
	oneMore := func(ctx context.Context) (string, error) {
		response, err := open(ctx, http.MethodPost, "/api/v1/namespaces/"+ns+"/configmaps", "application/json",
			strings.NewReader(`{"metadata":{"generateName":"one-more-"}}`))
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return response.Status + " " + string(text), err
	}

	attack("bodies that do not end, in as many writes as a tenant may send"+where, "slow POST attacks", func(ctx SpecContext) {
		hold(ctx, 2*fewest, 1<<10)
		Eventually(oneMore).WithContext(ctx).Should(And(HavePrefix("429"), ContainSubstring("as many writes in flight as it may have")))
		aliceWorks(ctx)
		Expect(mallory.Client.List(ctx, &corev1.ConfigMapList{})).To(Succeed(), "reads have places of their own")
		shouldBeThrottled(ctx, mallory, "the kind write were in flight than the limit of 10")
	})

	attack("bodies without an end and without a length"+where, "idea: each may become as large as the largest", func(ctx SpecContext) {
		hold(ctx, 2*fewest, -1)
		shouldBeThrottled(ctx, mallory, "requests wait for the memory of others")
		aliceWorks(ctx)
		Expect(oneMore(ctx)).To(HavePrefix("201"), "small writes do not wait for large ones")
	})

	attack("a flood of lists from two hundred clients"+where, "issue of peers: one tenant's controllers starve a shared apiserver", func(ctx SpecContext) {
		floods := make([]*flood, 0, 200)
		for range cap(floods) {
			floods = append(floods, newFlood(ctx, func(ctx context.Context, _ int64) error {
				response, err := open(ctx, http.MethodGet, "/api/v1/configmaps?pretty=true", "", nil)
				if err != nil {
					return err
				}
				defer func() { _ = response.Body.Close() }()
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					return err
				}
				if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusTooManyRequests {
					return fmt.Errorf("the status %s", response.Status)
				}
				return nil
			}))
		}
		for range 3 {
			aliceWorks(ctx)
		}
		for _, f := range floods {
			f.stop()
			Expect(f.err()).NotTo(HaveOccurred())
		}
	})

	attack("small writes without a pause"+where, "idea: a limit of bytes alone", func(ctx SpecContext) {
		// Several at a time, or a busy machine would write no faster than the limit.
		const writers = fewest / 2
		var sent atomic.Int64
		var limited atomic.Bool
		Expect(errors.Join(kit.AtOnce(writers, func(int) error {
			for !limited.Load() && sent.Add(1) <= 4*writeBurst {
				answer, err := oneMore(ctx)
				switch {
				case err != nil:
					return err
				case strings.HasPrefix(answer, "429") && strings.Contains(answer, "more than 20 times a second"):
					limited.Store(true)
				case !strings.HasPrefix(answer, "201"):
					return errors.New(answer)
				}
			}
			return nil
		})...)).To(Succeed())
		Expect(limited.Load()).To(BeTrue(), "after %d writes", sent.Load())
		aliceWorks(ctx)
		shouldBeThrottled(ctx, mallory, "more was written than 20 times")
	})

	attack("a compressed body that is a gigabyte"+where, "CVE-2019-11253 and archive bombs", func(ctx SpecContext) {
		megabyte := &bytes.Buffer{}
		packer := gzip.NewWriter(megabyte)
		_, err := packer.Write(make([]byte, 1<<20))
		Expect(err).NotTo(HaveOccurred())
		Expect(packer.Close()).To(Succeed())
		// Members of a gzip file that follow each other are one content.
		small := bytes.NewReader(bytes.Repeat(megabyte.Bytes(), 1<<10))
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, mallory.Config.Host+"/api/v1/namespaces/"+ns+"/configmaps", small)
		Expect(err).NotTo(HaveOccurred())
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Content-Encoding", "gzip")
		response, err := sender.Do(r)
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(response.Body.Close()).To(Succeed()) }()
		Expect(response.StatusCode).To(Equal(http.StatusBadRequest))
		aliceWorks(ctx)
	})

	const (
		containers      = 900_000
		containersField = 2
	)
	empty := func(container []byte, behind ...byte) string {
		return protobufPod(append(bytes.Repeat(container, containers*2/len(container)), behind...)) //nolint:mnd // bytes
	}
	for _, a := range []struct{ text, mediaType, body string }{
		{"a pod of empty containers by the million", "application/json", `{"spec":{"containers":[` + strings.Repeat("{},", containers) + `{}]}}`},
		{"a pod of containers that are null", "application/json", `{"spec":{"containers":[` + strings.Repeat("null,", containers/2) + `{}]}}`},
		{"a pod of empty containers in YAML", "application/yaml", "spec:\n  containers: [" + strings.Repeat("~,", containers) + "]"},
		{"a pod of empty containers in protobuf, two bytes each", runtime.ContentTypeProtobuf, empty(nestingtest.In(nil, containersField))},
		{"a pod of empty containers in protobuf, in front of a damage", runtime.ContentTypeProtobuf, empty(nestingtest.In(nil, containersField), 0xff)},
		{"a definition of empty properties in protobuf, three bytes each", runtime.ContentTypeProtobuf, string(nestingtest.Definition(
			bytes.Repeat(nestingtest.In(nil, nestingtest.PropertiesField), containers)))},
		{"a pod of empty containers in protobuf, fields of too high a number", runtime.ContentTypeProtobuf, empty(nestingtest.CutOff(nil, containersField))},
	} {
		attack(a.text+where, "CVE-2019-11253 and CVE-2022-3064: a body that takes a thousand times its bytes", func(ctx SpecContext) {
			response, err := open(ctx, http.MethodPost, "/api/v1/namespaces/"+ns+"/pods", a.mediaType, strings.NewReader(a.body))
			Expect(err).NotTo(HaveOccurred())
			defer func() { Expect(response.Body.Close()).To(Succeed()) }()
			text, err := io.ReadAll(response.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(response.StatusCode).To(Equal(http.StatusRequestEntityTooLarge), string(text))
			Expect(string(text)).To(ContainSubstring("elements"))
			aliceWorks(ctx)
		})
	}
}

// protobufPod is a pod with a spec.
func protobufPod(spec []byte) string {
	const specField = 2
	return string(nestingtest.Object("v1", "Pod", nestingtest.In(spec, specField)))
}

// shouldBeThrottled asserts that an admin sees that a tenant is at a limit.
func shouldBeThrottled(ctx context.Context, t *local.Tenant, message string) {
	GinkgoHelper()
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: t.VC.Namespace, Name: t.VC.Name}}
	Eventually(kit.Read(ctx, super.Client, vc)).Should(HaveField("Status.Conditions", ContainElement(And(
		HaveField("Type", tenancyv1alpha1.ConditionWithinLimits), HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", ContainSubstring(message))))))
}

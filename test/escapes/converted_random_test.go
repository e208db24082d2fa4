package escapes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

const (
	// untouched is the namespace of each tenant that it never changes.
	untouched = "untouched"
	// platformTreasure is in objects of the platform.
	platformTreasure = "treasure-of-the-platform"
	// eachTenant is how many clients of a tenant send requests at the same time.
	eachTenant = 2
)

// rival is a tenant that sends random requests.
type rival struct {
	*kit.Converted

	treasure string
	other    *rival

	mu     sync.Mutex
	seen   map[string]string // the requests that showed UIDs
	events atomic.Int64
}

// super is the name of a namespace in the super cluster.
func (t *rival) super(namespace string) string { return names.SuperNamespace(t.Key, namespace) }

// uids returns the UIDs that the tenant has seen, and by which requests.
func (t *rival) uids() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.seen)
}

var (
	uidsOf   = regexp.MustCompile(`"uid":"([0-9a-f-]{36})"`)
	tokensOf = regexp.MustCompile(`"continue":"([^"]+)"`)
	// encodedNames are those of the super cluster for names that are no DNS names.
	encodedNames = regexp.MustCompile(`x--[0-9a-v]{6,}`)
)

// read returns an error if a response has something that is not the tenant's,
// except what the request had.
func (t *rival) read(request, response string) error {
	asked, err := url.QueryUnescape(request)
	if err != nil { // it is not only a query
		asked = request
	}
	for _, secret := range []string{
		t.Key, t.other.Key, t.other.treasure, platformTreasure, names.ConvertedGroup(t.Key), names.ConvertedGroup(t.other.Key), names.ShelvedGroup,
		names.Converted + `"`, names.Namespace + `"`, names.VCName + `"`, names.ConvertedAdmission, encodedNames.FindString(response),
	} {
		if secret != "" && strings.Contains(response, secret) && !strings.Contains(asked, secret) {
			return fmt.Errorf("%.2000s\nshows %s to %s: %.4000s", request, secret, t.Key, response)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, found := range uidsOf.FindAllStringSubmatch(response, -1) {
		t.seen[found[1]] = request
	}
	return nil
}

// send sends random requests until it is to end, and counts the responses by
// status.
func (t *rival) send(ctx context.Context, h *hostility, ends func() bool, count func(randomRequest, local.Reply)) error {
	for !ends() {
		request := h.request(t)
		reply := t.Ask(ctx, request.method, request.path, request.body, request.headers...)
		if err := t.read(request.String(), fmt.Sprint(reply.Code, " ", reply.Body)); err != nil {
			return err
		}
		for _, found := range tokensOf.FindAllStringSubmatch(reply.Body, -1) {
			h.tokens.add(found[1])
		}
		count(request, reply)
	}
	return nil
}

// watch reads the events of a kind in all namespaces until the context ends. A
// watch that ends is followed by another.
func (t *rival) watch(ctx context.Context, path, accept string) error {
	clients, err := rest.HTTPClientFor(t.Config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Config.Host+path+"?watch=1&allowWatchBookmarks=true", nil)
		if err != nil {
			return err
		}
		r.Header.Set("Accept", accept)
		response, err := clients.Do(r)
		if err != nil {
			continue // the time is over
		}
		if response.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
			return errors.Join(fmt.Errorf("watch %s: %s: %s", path, response.Status, body), response.Body.Close())
		}
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			t.events.Add(1)
			if err := t.read("watch "+path, lines.Text()); err != nil {
				return err
			}
		}
		_ = response.Body.Close()
	}
	return nil
}

// stock creates what a tenant has of its own, and lets its service account use
// its custom resources, which is vc-manager's part.
func (t *rival) stock(ctx context.Context) {
	GinkgoHelper()
	permitCustom(ctx, t.Converted, "example.com", "widgets", "gadgets")
	for resource, scope := range map[string]string{"widget": "Namespaced", "gadget": "Cluster"} {
		reply := t.Ask(ctx, http.MethodPost, crdsPath, `{"metadata":{"name":"`+resource+`s.example.com"},"spec":{"group":"example.com","scope":"`+scope+`",`+
			`"names":{"plural":"`+resource+`s","singular":"`+resource+`","kind":"`+strings.ToUpper(resource[:1])+resource[1:]+`"},`+
			`"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},`+
			`"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
		Expect(reply.Code).To(Equal(http.StatusCreated), reply.Body)
		DeferCleanup(func(ctx SpecContext) {
			Expect(t.Ask(ctx, http.MethodDelete, crdsPath+"/"+resource+"s.example.com", "").Code).To(Equal(http.StatusOK))
		})
	}
	for _, namespace := range []string{untouched, "shop"} {
		own := metav1.ObjectMeta{Namespace: namespace, Name: "hidden", Labels: map[string]string{"treasure": t.treasure}}
		kit.Create(ctx, t.Client, kit.Namespace(namespace), &corev1.Secret{ObjectMeta: own}, &corev1.ConfigMap{ObjectMeta: own})
		t.create(ctx, customGroup+"/namespaces/"+namespace+"/widgets", "Widget")
	}
	t.create(ctx, customGroup+"/gadgets", "Gadget")
	Eventually(func() error {
		return kit.Get(ctx, t.Client, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: untouched, Name: "kube-root-ca.crt"}})
	}).WithContext(ctx).Should(Succeed())
	Eventually(func() error {
		return kit.Get(ctx, t.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: untouched, Name: "default"}})
	}).WithContext(ctx).Should(Succeed())
}

// create creates a custom resource once its definition has an effect.
func (t *rival) create(ctx context.Context, path, kind string) {
	GinkgoHelper()
	object := `{"apiVersion":"example.com/v1","kind":"` + kind + `","metadata":{"name":"hidden","labels":{"treasure":"` + t.treasure + `"}}}`
	Eventually(func() int { return t.Ask(ctx, http.MethodPost, path, object).Code }).WithContext(ctx).
		Should(BeElementOf(http.StatusCreated, http.StatusConflict))
}

// stockPlatform creates objects of the platform, of which tenants may see one.
func stockPlatform(ctx context.Context) {
	GinkgoHelper()
	platform := kit.Namespace("fuzz-platform")
	hidden := metav1.ObjectMeta{Namespace: platform.Name, Name: "hidden", Labels: map[string]string{"treasure": platformTreasure}}
	kit.Create(ctx, super.Client, platform, &corev1.Secret{ObjectMeta: hidden}, &corev1.ConfigMap{ObjectMeta: hidden})
	DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, platform)).To(Succeed()) })
	class := metav1.ObjectMeta{Name: "fuzz-hidden", Labels: hidden.Labels}
	offered := metav1.ObjectMeta{Name: "fuzz-offered", Labels: map[string]string{names.Public: "true"}}
	for _, object := range []client.Object{
		&storagev1.StorageClass{ObjectMeta: class, Provisioner: "example.com/" + platformTreasure},
		&storagev1.StorageClass{ObjectMeta: offered, Provisioner: "example.com/offered"},
		&schedulingv1.PriorityClass{ObjectMeta: class, Description: platformTreasure},
	} {
		kit.Temporarily(ctx, super.Client, object)
	}
}

// randomly is how long random requests are sent.
func randomly() time.Duration {
	if os.Getenv("AT_LENGTH") != "" {
		return 10 * time.Minute
	}
	return 10 * time.Second
}

var _ = Describe("Random requests of converted tenants", Ordered, func() {
	attack("another's objects and the platform's, by random requests and watches of two tenants, one of whose keys begins with the other's", "design: fuzzer", func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		alice := &rival{Converted: converter.Tenant(ctx, "fuzz-1a2b3c-alice"), treasure: "treasure-of-alice", seen: map[string]string{}}
		bob := &rival{Converted: converter.Tenant(ctx, "fuzz-1a2b3c-alice-b"), treasure: "treasure-of-bob", seen: map[string]string{}}
		alice.other, bob.other = bob, alice
		stockPlatform(ctx)
		alice.stock(ctx)
		bob.stock(ctx)
		o := startOracle(ctx, alice, bob)

		seed, shared := rand.Uint64(), &tokens{}
		group, limited := errgroup.WithContext(ctx)
		watching, stopWatching := context.WithCancel(limited)
		codes, sent := map[int]int{}, 0
		var broken []string
		var mu sync.Mutex
		count := func(request randomRequest, reply local.Reply) {
			mu.Lock()
			defer mu.Unlock()
			codes[reply.Code]++
			sent++
			// The second is an apiserver's response to a request for one custom resource
			// as a list of metadata.
			if reply.Code == http.StatusInternalServerError && !strings.Contains(reply.Body, `"message":"content is not a list"`) {
				broken = append(broken, fmt.Sprintf("%s: %s", request, reply.Body))
			}
		}
		began := time.Now()
		ends := func() bool { return time.Since(began) > randomly() || limited.Err() != nil }
		var sending sync.WaitGroup
		for i, t := range []*rival{alice, bob} {
			for _, kind := range hostileKinds {
				if !kind.isAnswered() {
					h := &hostility{Rand: rand.New(rand.NewPCG(seed, rand.Uint64()))}
					group.Go(func() error { return t.watch(watching, kind.path+"/"+kind.resource, h.accept()) })
				}
			}
			for each := range eachTenant {
				h := &hostility{Rand: rand.New(rand.NewPCG(seed, uint64(eachTenant*i+each))), tokens: shared}
				sending.Add(1)
				group.Go(func() error {
					defer GinkgoRecover()
					defer sending.Done()
					return t.send(ctx, h, ends, count)
				})
			}
		}
		for !ends() {
			o.judge()
			time.Sleep(time.Second)
		}
		sending.Wait()
		Eventually(func() bool { // on a slow machine, watches may begin late
			return limited.Err() != nil || min(alice.events.Load(), bob.events.Load()) > int64(len(hostileKinds))
		}).WithContext(ctx).Should(BeTrue(), "events of the watches")
		stopWatching()
		Expect(group.Wait()).To(Succeed())
		o.judge()
		AddReportEntry("random requests", fmt.Sprintf("%d with the seed %d, %d events of watches, %d owned UIDs: %v",
			sent, seed, alice.events.Load()+bob.events.Load(), len(o.owners), codes))
		Expect(broken).To(BeEmpty(), "requests that the gateway could not answer")
		for _, t := range []*rival{alice, bob} {
			Expect(t.events.Load()).To(BeNumerically(">", len(hostileKinds)), "events of the watches of %s", t.Key)
		}
	}, NodeTimeout(15*time.Minute))
})

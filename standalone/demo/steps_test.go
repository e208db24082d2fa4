package demo

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"

	"github.com/virtualcluster/virtualcluster/standalone/internal/apitest"
)

var errRefused = errors.New("refused")

// contains fails the test unless an error is as wanted: empty for none.
func contains(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// clientWith returns a client with objects, of which requests may be
// intercepted.
func clientWith(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), tenancyv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func tenantWith(t *testing.T, name string, funcs interceptor.Funcs, objects ...client.Object) *Tenant {
	t.Helper()
	return &Tenant{Name: name, Namespace: "root-" + name, client: clientWith(t, funcs, objects...), config: &rest.Config{}}
}

// refusing refuses requests about one type of objects.
func refusing[T any](verb string) interceptor.Funcs {
	refuse := func(obj any) error {
		if _, about := obj.(T); about {
			return errRefused
		}
		return nil
	}
	var funcs interceptor.Funcs
	switch verb {
	case "list":
		funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return errors.Join(refuse(list), c.List(ctx, list, opts...))
		}
	case "get":
		funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return errors.Join(refuse(obj), c.Get(ctx, key, obj, opts...))
		}
	case "delete":
		funcs.Delete = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return errors.Join(refuse(obj), c.Delete(ctx, obj, opts...))
		}
	case "apply":
		funcs.Apply = func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return errRefused
		}
	case "patch":
		funcs.Patch = func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errRefused
		}
	case "watch":
		funcs.Watch = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			return nil, errRefused
		}
	}
	return funcs
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, UID: types.UID("uid-" + name)}}
	p.Status.Phase = corev1.PodRunning
	for _, f := range change {
		f(p)
	}
	return p
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// copyOf labels an object of the super cluster as a tenant's.
func copyOf[T client.Object](tenant, uid string, obj T) T {
	obj.SetLabels(map[string]string{names.VCName: tenant, names.VCNamespace: metav1.NamespaceDefault})
	obj.SetAnnotations(map[string]string{names.UID: uid})
	return obj
}

// answering returns an apiserver that responds to lists of pods with a status.
func answering(t *testing.T, status int) *rest.Config {
	t.Helper()
	_, config := apitest.Serve(t, map[string][]apitest.Answer{
		"GET /api":         {{Object: &metav1.APIVersions{Versions: []string{"v1"}}}},
		"GET /apis":        {{Object: &metav1.APIGroupList{}}},
		"GET /api/v1":      {{Object: &metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod"}}}}},
		"GET /api/v1/pods": {{Status: status, Object: &corev1.PodList{}}},
	})
	return config
}

// TestApart: the demo tells what each tenant sees, and fails if that is
// anything of the other.
func TestApart(t *testing.T) {
	own := func(change ...func(*corev1.Pod)) []client.Object {
		return []client.Object{namespace("shop"), pod("web-1", change...)}
	}
	for name, c := range map[string]struct {
		one, other   interceptor.Funcs
		others       []client.Object
		there, super int // what apiservers answer to the wrong credentials
		want         string
	}{
		"they are":                     {want: ""},
		"the same pod by its UID":      {others: own(func(p *corev1.Pod) { p.Name = "web-9" }), want: "red and blue both see the pod web-1"},
		"the same pod by its name":     {others: own(func(p *corev1.Pod) { p.UID = "other" }), want: "red and blue both see the pod web-1"},
		"blue takes the credentials":   {there: http.StatusOK, want: "blue takes the credentials of red"},
		"blue knows who it is":         {there: http.StatusForbidden, want: "try the credentials of red at blue"},
		"the super cluster takes them": {super: http.StatusOK, want: "the super cluster takes the credentials of red"},
		"namespaces cannot be listed":  {one: refusing[*corev1.NamespaceList]("list"), want: "red: list namespaces: refused"},
		"pods cannot be listed":        {other: refusing[*corev1.PodList]("list"), want: "blue: list pods: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.others == nil {
				c.others = []client.Object{namespace("shop"), namespace("default"), pod("web-2")}
			}
			red, blue := tenantWith(t, "red", c.one, own()...), tenantWith(t, "blue", c.other, c.others...)
			answers := map[bool]int{true: http.StatusUnauthorized}
			status := func(given int) int { return max(given, answers[given == 0]) }
			blue.config = answering(t, status(c.there))
			admin := &Admin{config: answering(t, status(c.super))}
			var told []string
			contains(t, apart(t.Context(), admin, red, blue, func(line string) { told = append(told, line) }), c.want)
			want := []string{
				"red sees the namespaces shop; 1 pods", "blue sees the namespaces default, shop; 1 pods",
				"red's credentials are refused by blue's apiserver", "red's credentials are refused by the super cluster's apiserver",
			}
			if c.want == "" && !slices.Equal(told, want) {
				t.Errorf("it tells %q", told)
			}
		})
	}
}

// keys are what an etcd has.
type keys struct {
	etcdserverpb.UnimplementedKVServer

	all []string
}

func (k *keys) Range(_ context.Context, request *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	response := &etcdserverpb.RangeResponse{}
	for _, key := range k.all {
		if key >= string(request.GetKey()) && key < string(request.GetRangeEnd()) {
			response.Count++
		}
	}
	return response, nil
}

// TestNothingLeft: whatever is left of a tenant is found, and nothing of
// another is taken for it.
func TestNothingLeft(t *testing.T) {
	const mine, others = "/controlplanes/root-red/", "/controlplanes/root-red2/pods/x"
	for name, c := range map[string]struct {
		objects []client.Object
		funcs   interceptor.Funcs
		files   []string
		keys    []string
		want    string
	}{
		"nothing":         {nil, interceptor.Funcs{}, []string{"root-red2"}, []string{others, "/controlplanes/root-re/x"}, ""},
		"of another":      {[]client.Object{copyOf("blue", "", namespace("root-blue-shop"))}, interceptor.Funcs{}, nil, nil, ""},
		"namespaces":      {[]client.Object{copyOf("red", "", namespace("root-red-shop"))}, interceptor.Funcs{}, nil, nil, "namespaces of red are left in the super cluster: root-red-shop"},
		"files":           {nil, interceptor.Funcs{}, []string{"root-red"}, nil, "files of red are left in "},
		"keys":            {nil, interceptor.Funcs{}, nil, []string{mine + "pods/x", mine + "pods/y", others}, "2 keys of red are left in etcd"},
		"it cannot look":  {nil, refusing[*corev1.NamespaceList]("list"), nil, nil, "list the super cluster's namespaces of red: refused"},
		"etcd is not up":  {nil, interceptor.Funcs{}, []string{"no etcd"}, nil, "look into etcd: "},
		"nothing in etcd": {nil, interceptor.Funcs{}, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			for _, file := range append(c.files, "..", filepath.Join("..", "etcd-tenants")) {
				if err := os.MkdirAll(filepath.Join(dir, "controlplanes", file), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if slices.Contains(c.files, "no etcd") {
				cancel()
			} else {
				serveKeys(t, filepath.Join(dir, "etcd-tenants", "client.sock"), c.keys)
			}
			admin := &Admin{client: clientWith(t, c.funcs, c.objects...)}
			contains(t, nothingLeft(ctx, admin, dir, &Tenant{Name: "red", Namespace: "root-red"}), c.want)
		})
	}
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func serveKeys(t *testing.T, socket string, all []string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, &keys{all: all})
	go func() { _ = server.Serve(listener) }() // ends with the server
	t.Cleanup(server.Stop)
}

// TestRemove: a tenant is removed when it is gone, and not when its deletion
// was accepted.
func TestRemove(t *testing.T) {
	vc := func(finalizers ...string) *tenancyv1alpha1.VirtualCluster {
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red", Finalizers: finalizers}}
		vc.Status.Message = "deleting its namespaces"
		return vc
	}
	reads := 0
	var stop context.CancelFunc
	after := func(read int, do func(context.Context, client.WithWatch)) interceptor.Funcs {
		return interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if reads++; reads == read {
					do(ctx, c)
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}
	}
	finalize := func(ctx context.Context, c client.WithWatch) {
		if err := c.Patch(ctx, vc(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		funcs interceptor.Funcs
		vc    *tenancyv1alpha1.VirtualCluster
		reads int
		want  string
	}{
		"at once":         {after(0, nil), vc(), 1, ""},
		"in the end":      {after(3, finalize), vc("wait"), 3, ""},
		"it may not":      {refusing[*tenancyv1alpha1.VirtualCluster]("delete"), vc(), 0, "delete VirtualCluster red: refused"},
		"it may not read": {refusing[*tenancyv1alpha1.VirtualCluster]("get"), vc("wait"), 0, "VirtualCluster red is not gone (deleting its namespaces): refused"},
		"it takes too long": {
			after(2, func(context.Context, client.WithWatch) { stop() }), vc("wait"), 2,
			"VirtualCluster red is not gone (deleting its namespaces): context canceled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ctx context.Context
			ctx, stop = context.WithCancel(t.Context())
			defer stop()
			reads = 0
			contains(t, (&Admin{client: clientWith(t, c.funcs, c.vc)}).remove(ctx, "red"), c.want)
			if reads != c.reads {
				t.Errorf("it looked %d times, want %d", reads, c.reads)
			}
		})
	}
}

// tenantOf are the objects of a tenant that is ready.
func tenantOf(name string) []client.Object {
	vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	vc.Status.ClusterNamespace = "root-" + name
	vc.Status.Conditions = []metav1.Condition{{Type: tenancyv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	const kubeconfig = `{"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}],"current-context":"c"}`
	return []client.Object{vc, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "root-" + name, Name: names.AdminKubeconfigSecret},
		Data:       map[string][]byte{names.AdminKubeconfigKey: []byte(kubeconfig)},
	}}
}

// TestTenants: both tenants are there before their shops open, and both are gone
// with all that they had before the demo says so.
func TestTenants(t *testing.T) {
	both := slices.Concat(tenantOf("red"), tenantOf("light"), tenantOf("blue"))
	for name, c := range map[string]struct {
		funcs           interceptor.Funcs
		objects         []client.Object
		created, remove string // part of the error; empty for none
	}{
		"all is well":             {objects: both},
		"one has no kubeconfig":   {objects: both[:5], created: "the kubeconfig of blue: "},
		"they cannot be read":     {funcs: refusing[*tenancyv1alpha1.VirtualCluster]("get"), objects: both, created: "VirtualCluster red is not ready (): refused"},
		"one of them is left":     {objects: append([]client.Object{copyOf("blue", "", namespace("root-blue-shop"))}, both...), remove: "root-blue-shop"},
		"one cannot be deleted":   {funcs: refusing[*tenancyv1alpha1.VirtualCluster]("delete"), objects: both, remove: "refused"},
		"namespaces are not told": {funcs: refusing[*corev1.NamespaceList]("list"), objects: both, remove: "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			if err := os.Mkdir(filepath.Join(dir, "etcd-tenants"), 0o700); err != nil {
				t.Fatal(err)
			}
			serveKeys(t, filepath.Join(dir, "etcd-tenants", "client.sock"), nil)
			var out bytes.Buffer
			s := &stage{admin: &Admin{client: clientWith(t, c.funcs, c.objects...)}, dataDir: dir, out: &out, begun: time.Now()}
			tenants, err := s.createTenants(t.Context())
			contains(t, err, c.created)
			if err != nil {
				return
			}
			red, blue := tenants[0], tenants[1]
			if red.Name != "red" || blue.Namespace != "root-blue" || blue.config.BearerToken != "t" {
				t.Errorf("the tenants are %+v and %+v", red, blue)
			}
			contains(t, s.removeTenants(t.Context(), tenants...), c.remove)
			if told := strings.Count(out.String(), "\n"); told != map[bool]int{true: 4, false: 3}[c.remove == ""] {
				t.Errorf("it tells\n%s", &out)
			}
		})
	}
}

// deadline is soon, though after all other steps, if that is what a test wants,
// and far away otherwise.
func deadline(t *testing.T, want string) (context.Context, context.CancelFunc) {
	t.Helper()
	if strings.HasSuffix(want, context.DeadlineExceeded.Error()) {
		return context.WithTimeout(t.Context(), 2*time.Second)
	}
	return context.WithTimeout(t.Context(), patience)
}

// TestShop: what goes wrong with a tenant's shop names the tenant, the step and
// what there was instead.
func TestShop(t *testing.T) {
	copies := []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "root-red-shop", Name: web}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "root-red-shop", Name: web}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "root-red-shop", Name: web}},
	}
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		super := pod(name)
		super.Namespace = "root-red-shop"
		copies = append(copies, copyOf("red", "uid-"+name, super))
	}
	for name, c := range map[string]struct {
		tenant, super interceptor.Funcs
		pods          []client.Object
		copies        []client.Object
		want          string
	}{
		"it opens":           {copies: copies, want: ""},
		"pods not watched":   {tenant: refusing[any]("watch"), want: "red: watch pods: refused"},
		"nothing is applied": {tenant: refusing[any]("apply"), want: "red: apply Namespace shop: refused"},
		"one pod fails": {
			pods: []client.Object{pod("web-1"), pod("web-2", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })},
			want: "red has 2 pods, 1 of them running, and should have 3: context deadline exceeded",
		},
		"a pod without a copy":      {copies: copies[:5], want: "the pod shop/web-3 of red runs, but not in the super cluster"},
		"a Secret without a copy":   {copies: append(slices.Clone(copies[:2]), copies[3:]...), want: "the secret shop/web of red: context deadline exceeded"},
		"copies cannot be read":     {super: refusing[*corev1.ConfigMap]("get"), copies: copies, want: "the configmap shop/web of red: refused"},
		"copies cannot be listed":   {super: refusing[*corev1.PodList]("list"), want: "list the super cluster's pods of red: refused"},
		"tenant's cannot be listed": {tenant: refusing[*corev1.PodList]("list"), want: "red: list pods: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := deadline(t, c.want)
			defer cancel()
			if c.pods == nil {
				c.pods = []client.Object{pod("web-1"), pod("web-2"), pod("web-3")}
			}
			var out bytes.Buffer
			s := &stage{admin: &Admin{client: clientWith(t, c.super, c.copies...)}, out: &out, begun: time.Now()}
			contains(t, s.openShops(ctx, tenantWith(t, "red", c.tenant, c.pods...)), c.want)
			if table := out.String(); c.want == "" && (strings.Count(table, "red ") != 6 || !strings.Contains(table, "root-red-shop/web-3")) {
				t.Errorf("the table is\n%s", table)
			} else if c.want != "" && table != "" {
				t.Errorf("it tells of success:\n%s", table)
			}
		})
	}
}

// TestChange: a change is awaited on both sides.
func TestChange(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: web}}
	var five, copies []client.Object
	for _, name := range []string{"1", "2", "3", "4", "5"} {
		five, copies = append(five, pod(name)), append(copies, copyOf("red", "uid-"+name, pod(name)))
	}
	for name, c := range map[string]struct {
		one, other interceptor.Funcs
		others     []client.Object
		copies     []client.Object
		want       string
	}{
		"both follow":         {copies: copies},
		"it cannot scale":     {one: refusing[any]("patch"), want: "red: scale the Deployment: refused"},
		"it cannot delete":    {other: refusing[*appsv1.Deployment]("delete"), want: "blue: delete the Deployment: refused"},
		"one has too few":     {copies: copies[:4], want: "the super cluster has 4 pods of red and should have 5: context deadline exceeded"},
		"the other has pods":  {others: five[:1], copies: copies, want: "blue has 1 pods, 1 of them running, and should have 0: context deadline exceeded"},
		"the other is copied": {copies: append([]client.Object{copyOf("blue", "x", pod("x"))}, copies...), want: "the super cluster has 1 pods of blue and should have 0: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := deadline(t, c.want)
			defer cancel()
			red := tenantWith(t, "red", c.one, slices.Concat(five, []client.Object{deployment.DeepCopy()})...)
			blue := tenantWith(t, "blue", c.other, slices.Concat(c.others, []client.Object{deployment.DeepCopy()})...)
			var out bytes.Buffer
			s := &stage{admin: &Admin{client: clientWith(t, interceptor.Funcs{}, c.copies...)}, out: &out, begun: time.Now()}
			contains(t, s.change(ctx, red, blue), c.want)
			if told := strings.Contains(out.String(), "red scaled its Deployment to 5, blue deleted its own"); told != (c.want == "") {
				t.Errorf("it tells %q", &out)
			}
		})
	}
}

// TestStopwatchListens: what a watch tells is measured until it is stopped.
func TestStopwatchListens(t *testing.T) {
	red := tenantWith(t, "red", interceptor.Funcs{})
	s, err := startStopwatch(t.Context(), red)
	if err != nil {
		t.Fatal(err)
	}
	p := pod("web", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
	if err := red.client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	p.Status.Phase = corev1.PodRunning
	if err := red.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	contains(t, eventually(t.Context(), func(context.Context) (bool, error) {
		took, runs := s.took(p.UID)
		return runs && took > 0, nil
	}), "")
	s.stop()
	if _, open := <-s.watch.ResultChan(); open {
		t.Error("the watch continues")
	}
}

// TestEventually: an error ends waiting, and so does the caller's context, with
// its cause.
func TestEventually(t *testing.T) {
	tries := 0
	contains(t, eventually(t.Context(), func(context.Context) (bool, error) { tries++; return tries == 3, nil }), "")
	contains(t, eventually(t.Context(), func(context.Context) (bool, error) { return false, errRefused }), "refused")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the syncer failed"))
	contains(t, eventually(ctx, func(context.Context) (bool, error) { return false, nil }), "the syncer failed")
}

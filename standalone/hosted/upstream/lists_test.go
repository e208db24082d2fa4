package upstream

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	webhookinitializer "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	klog.OsExit = hosted.ContainExit(os.Exit)
	os.Exit(m.Run())
}

// TestControllers tests that each controller of kube-controller-manager is
// decided in controllers.txt, and that a host runs those that are decided so.
func TestControllers(t *testing.T) {
	var known []string
	for name, controller := range controllermanager.NewControllerDescriptors() {
		var needs []string
		for _, gate := range controller.GetRequiredFeatureGates() {
			needs = append(needs, string(gate))
		}
		known = append(known, strings.Join(append([]string{name}, needs...), " "))
	}
	list := compare(t, "controllers.txt", known, "absent", "kubelets", "super", "tenant")
	for decision, controllers := range map[string][]hosted.Controller{
		"tenant": hosted.TenantControllers(), "super": withoutTenants(hosted.SuperControllers()), "kubelets": hosted.KubeletControllers(),
	} {
		var running, want []string
		for _, controller := range controllers {
			if controller.Name != "kube-scheduler" { // another program of Kubernetes
				running = append(running, controller.Name)
			}
		}
		for _, entry := range list {
			if entry.decision == decision {
				name, _, _ := strings.Cut(entry.name, " ")
				want = append(want, name)
			}
		}
		if added, removed := difference(want, running); len(added)+len(removed) > 0 {
			t.Errorf("%s: a host runs %q, which are not in the list, and does not run %q", decision, added, removed)
		}
	}
}

func withoutTenants(controllers []hosted.Controller) []hosted.Controller {
	tenants := hosted.TenantControllers()
	return slices.DeleteFunc(controllers, func(c hosted.Controller) bool {
		return slices.ContainsFunc(tenants, func(of hosted.Controller) bool { return of.Name == c.Name })
	})
}

// TestAdmissionPlugins tests that each admission plugin is decided in
// admission.txt, with what it wants from its server.
func TestAdmissionPlugins(t *testing.T) {
	plugins := options.NewAdmissionOptions().GenericAdmission
	var registered []string
	for _, name := range plugins.Plugins.Registered() {
		state := "on"
		if plugins.DefaultOffPlugins.Has(name) {
			state = "off"
		}
		registered = append(registered, strings.Join(append([]string{name, state}, wants(t, plugins.Plugins, name)...), " "))
	}
	compare(t, "admission.txt", registered, "bound", "off", "stateless")
}

// wants returns what a plugin is given before it admits requests.
func wants(t *testing.T, plugins *admission.Plugins, name string) []string {
	t.Helper()
	var found []string
	plugin, err := plugins.InitPlugin(name, nil, initializerFunc(func(plugin admission.Interface) { found = wantsOf(plugin) }))
	if plugin == nil && err == nil {
		t.Errorf("the plugin %s does not exist", name)
	}
	return found // a plugin that is not given it is an error
}

type initializerFunc func(admission.Interface)

func (f initializerFunc) Initialize(plugin admission.Interface) { f(plugin) }

func wantsOf(plugin admission.Interface) []string {
	var found []string
	add := func(name string, wanted bool) {
		if wanted {
			found = append(found, name)
		}
	}
	add("authorizer", is[initializer.WantsAuthorizer](plugin))
	add("client", is[initializer.WantsExternalKubeClientSet](plugin))
	add("dynamic-client", is[initializer.WantsDynamicClient](plugin))
	add("informers", is[initializer.WantsExternalKubeInformerFactory](plugin))
	add("quota", is[initializer.WantsQuotaConfiguration](plugin))
	add("rest-mapper", is[initializer.WantsRESTMapper](plugin))
	add("schemas", is[initializer.WantsSchemaResolver](plugin))
	add("services", is[webhookinitializer.WantsServiceResolver](plugin))
	add("webhooks", is[webhookinitializer.WantsAuthenticationInfoResolverWrapper](plugin))

	return found
}

func is[T any](plugin admission.Interface) bool {
	_, ok := plugin.(T)
	return ok
}

// TestAPI tests that each resource of the API is decided in api.txt, and each
// hook of the apiserver in hooks.txt.
func TestAPI(t *testing.T) {
	client := controlPlane(t)
	compare(t, "api.txt", resources(t, client.Discovery()), "bound", "dials", "replaced", "stored", "virtual")
	compare(t, "hooks.txt", hooks(t, client.Discovery()), "cluster", "server")
}

// controlPlane returns a client of a new control plane.
func controlPlane(t *testing.T) kubernetes.Interface {
	t.Helper()
	host, err := hosted.Start(t.Context(), hosted.Options{Dir: t.TempDir(), UnsafeNoFsync: true, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := host.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	plane, err := host.Run(hosted.Spec{Name: "upstream", Stock: true})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-plane.Ready():
	case <-plane.Done():
		t.Fatal(plane.Err())
	case <-time.After(patience):
		t.Fatalf("not ready after %s", patience)
	}
	client, err := kubernetes.NewForConfig(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func resources(t *testing.T, client discovery.DiscoveryInterface) []string {
	t.Helper()
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			all = append(all, list.GroupVersion+" "+resource.Name)
		}
	}
	return all
}

// hooks returns the names of the start hooks, which are part of the health of
// an apiserver.
func hooks(t *testing.T, client discovery.DiscoveryInterface) []string {
	t.Helper()
	health, err := client.RESTClient().Get().AbsPath("/livez").Param("verbose", "").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(health)) {
		if _, check, ok := strings.Cut(line, "poststarthook/"); ok {
			name, _, _ := strings.Cut(check, " ")
			all = append(all, name)
		}
	}
	return all
}

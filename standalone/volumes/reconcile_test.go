package volumes

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	errRefused = errors.New("refused")
	volumesOf  = schema.GroupResource{Resource: "persistentvolumes"}
)

// clientWith returns a client with objects whose writes may be intercepted.
func clientWith(funcs interceptor.Funcs, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func failing(err error) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return err },
	}
}

func volumesIn(t *testing.T, c client.Client) []corev1.PersistentVolume {
	t.Helper()
	list := &corev1.PersistentVolumeList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// TestClaims tests that a pending claim gets one volume with its directory, and
// that the next attempt can continue after every failure.
func TestClaims(t *testing.T) {
	same := func(*corev1.PersistentVolumeClaim) {}
	for name, c := range map[string]struct {
		change  func(*corev1.PersistentVolumeClaim)
		funcs   interceptor.Funcs
		prepare func(t *testing.T, d Directory)
		volumes int
		event   string // part of it; empty for none
		err     string // part of it; empty for none
	}{
		"a claim":              {change: same, volumes: 1},
		"a claim of another":   {change: func(p *corev1.PersistentVolumeClaim) { p.Annotations[provisioner] = "other" }},
		"a claim with a class": {change: func(p *corev1.PersistentVolumeClaim) { p.Spec.StorageClassName = new("fast") }, volumes: 1},
		"a claim without one":  {change: func(p *corev1.PersistentVolumeClaim) { p.Spec.StorageClassName = nil }, volumes: 1},
		"a block device": {
			change: func(p *corev1.PersistentVolumeClaim) { p.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
			event:  "Warning ProvisioningFailed volumes are directories",
		},
		"a selector": {
			change: func(p *corev1.PersistentVolumeClaim) { p.Spec.Selector = &metav1.LabelSelector{} },
			event:  "Warning ProvisioningFailed a claim with a selector",
		},
		"a volume that exists":       {change: same, funcs: failing(apierrors.NewAlreadyExists(volumesOf, "pvc-1"))},
		"a volume that is refused":   {change: same, funcs: failing(errRefused), err: "claim ns/data: refused"},
		"a file for a directory":     {change: same, prepare: fileInPlace, err: "the directory of a volume"},
		"no directory of all":        {change: same, prepare: func(_ *testing.T, d Directory) { _ = os.RemoveAll(d.Here) }, err: "the directory of a volume"},
		"a name that leads upwards":  {change: func(p *corev1.PersistentVolumeClaim) { p.UID = "/../../outside" }, err: "escapes"},
		"a link that leads outwards": {change: same, prepare: linkOutwards, err: "escapes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := newDirectory(t)
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			recorder := events.NewFakeRecorder(1)
			reconciler := &claims{client: clientWith(c.funcs), events: recorder, dir: dir}
			claim := waiting(c.change)
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
			_, err := reconciler.Reconcile(t.Context(), claim)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			found := volumesIn(t, reconciler.client)
			if len(found) != c.volumes {
				t.Errorf("there are %d volumes, want %d", len(found), c.volumes)
			}
			for i := range found {
				// Containers of any user write to it.
				if info, err := os.Stat(filepath.Join(dir.Here, found[i].Name)); err != nil || info.Mode().Perm() != 0o777 {
					t.Errorf("its directory is %v (%v)", info, err)
				}
				if size := found[i].Spec.Capacity.Storage().String(); size != "1Gi" {
					t.Errorf("its size is %s", size)
				}
			}
			checkEvent(t, recorder, c.event)
			checkOutside(t, outside)
		})
	}
}

func checkEvent(t *testing.T, recorder *events.FakeRecorder, want string) {
	t.Helper()
	select {
	case event := <-recorder.Events:
		if want == "" || !strings.HasPrefix(event, want) {
			t.Errorf("the event is %q, want %q", event, want)
		}
	default:
		if want != "" {
			t.Errorf("there is no event, want %q", want)
		}
	}
}

// newDirectory returns a directory of volumes, and another one beside it with a
// file that must stay as it is.
func newDirectory(t *testing.T) (dir Directory, outside string) {
	t.Helper()
	root := t.TempDir()
	dir = Directory{Here: filepath.Join(root, "volumes"), There: "/var/lib/volumes", Node: "worker"}
	outside = filepath.Join(root, "outside")
	if err := errors.Join(dir.make(), os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

func checkOutside(t *testing.T, outside string) {
	t.Helper()
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a directory that is not of volumes is %v now (%v)", info, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
		t.Error(err)
	}
}

func fileInPlace(t *testing.T, d Directory) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(d.Here, "pvc-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func linkOutwards(t *testing.T, d Directory) {
	t.Helper()
	path := filepath.Join(d.Here, "pvc-1")
	if err := errors.Join(os.RemoveAll(path), os.Symlink("../outside", path)); err != nil {
		t.Fatal(err)
	}
}

// TestReleased: volumes of claims that are gone are removed with their data,
// and no others.
func TestReleased(t *testing.T) {
	conflict := apierrors.NewConflict(volumesOf, "pvc-1", errRefused)
	for name, c := range map[string]struct {
		change  func(*corev1.PersistentVolume)
		funcs   interceptor.Funcs
		prepare func(t *testing.T, d Directory)
		removed bool   // the data
		err     string // part of it; empty for none
	}{
		"a released volume": {removed: true},
		"one that is bound": {change: func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }},
		"one of another":    {change: func(v *corev1.PersistentVolume) { v.Annotations[provisionedBy] = "other" }},
		"one that is to be kept": {change: func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}},
		"one that is elsewhere":    {change: func(v *corev1.PersistentVolume) { v.Spec.Local.Path = "/var/lib/volumes" }},
		"one that is no directory": {change: func(v *corev1.PersistentVolume) { v.Spec.Local = nil }},
		"one that is gone":         {funcs: failing(apierrors.NewNotFound(volumesOf, "pvc-1")), removed: true},
		"one that is another now":  {funcs: failing(conflict), removed: true, err: "volume pvc-1"},
		"data that cannot be removed": {
			prepare: func(_ *testing.T, d Directory) { _ = os.RemoveAll(d.Here) }, removed: true, err: "the directory of a volume",
		},
		"a name that leads upwards": {
			change: func(v *corev1.PersistentVolume) { v.Name, v.Spec.Local.Path = "../outside", "/var/lib/outside" }, err: "escapes",
		},
		"a link that leads outwards": {
			prepare: linkOutwards, removed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := newDirectory(t)
			data := filepath.Join(dir.Here, "pvc-1", "deep", "file")
			if err := errors.Join(os.MkdirAll(filepath.Dir(data), 0o700), os.WriteFile(data, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				c.prepare(t, dir)
			}
			volume := (&claims{dir: dir}).volume(waiting(func(*corev1.PersistentVolumeClaim) {}))
			volume.Status.Phase = corev1.VolumeReleased
			if c.change != nil {
				c.change(volume)
			}
			reconciler := &released{client: clientWith(c.funcs, volume), dir: dir}
			_, err := reconciler.Reconcile(t.Context(), volume)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			if _, err := os.Stat(data); os.IsNotExist(err) != c.removed {
				t.Errorf("the data: %v, want them removed: %t", err, c.removed)
			}
			// The volume is the last that goes, so that nothing is forgotten.
			if gone := len(volumesIn(t, reconciler.client)) == 0; gone != (c.removed && c.err == "" && c.funcs.Delete == nil) {
				t.Errorf("the volume is gone: %t", gone)
			}
			checkOutside(t, outside)
		})
	}
}

// TestRunNeeds: what keeps volumes from being provided is said at the start.
func TestRunNeeds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config *rest.Config
		dir    string
		want   string
	}{
		"no cluster":             {&rest.Config{Host: "not a URL"}, t.TempDir(), "not a URL"},
		"a class that is denied": {answering(t, http.StatusForbidden), t.TempDir(), "StorageClass local"},
		"a file for a directory": {answering(t, http.StatusOK), file, "the directory of volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(t.Context(), c.config, Directory{Here: c.dir}, logr.Discard())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// answering is an apiserver that answers writes of classes with a status.
func answering(t *testing.T, status int) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"storage.k8s.io/v1",
				"resources":[{"name":"storageclasses","kind":"StorageClass"}]}`))
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"kind":"StorageClass","apiVersion":"storage.k8s.io/v1","metadata":{"name":"local"}}`))
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

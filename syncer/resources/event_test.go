package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// superEvent returns an event about the copy of the pod default/web.
func superEvent() *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: superDefault, Name: "web.1", UID: "event-uid", ResourceVersion: "7",
			Labels: map[string]string{"its": "own"}, Annotations: map[string]string{"its": "own"},
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: superDefault, Name: "web", UID: "super-uid", ResourceVersion: "8",
			FieldPath: "spec.containers{app}",
		},
		Related:        &corev1.ObjectReference{Kind: "Node", Name: "control-plane"},
		Type:           corev1.EventTypeWarning,
		Reason:         "Failed",
		Message:        "cannot pull for " + superDefault + "/web of " + blue.Key,
		Action:         "Pulling " + blue.Key,
		Count:          3,
		FirstTimestamp: metav1.Unix(1, 0),
		LastTimestamp:  metav1.Unix(2, 0),
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-1"},

		ReportingController: "kubelet", ReportingInstance: "control-plane-7",
	}
}

func TestEventComesUp(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Event]](t, Event())
	if k.Node || !k.Expires || k.Status != nil {
		t.Errorf("the kind is %+v; want one that expires, and has no status", k)
	}
	pod := &corev1.Pod{ObjectMeta: meta("web")}
	view := kinds.View{
		Tenant: blue, Namespace: "default", Lookup: lookup(map[string]client.Object{"Pod " + superDefault + "/web": pod}),
	}
	want := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.1"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "web", UID: "tenant-uid", FieldPath: "spec.containers{app}",
		},
		Type:           corev1.EventTypeWarning,
		Reason:         "Failed",
		Message:        "cannot pull for default/web of blue",
		Action:         "Pulling blue",
		Count:          3,
		FirstTimestamp: metav1.Unix(1, 0),
		LastTimestamp:  metav1.Unix(2, 0),
		Source:         corev1.EventSource{Component: "kubelet", Host: "node-1"},

		ReportingController: "kubelet", ReportingInstance: "kubelet",
	}
	if diff := cmp.Diff(want, k.Desired(view, superEvent())); diff != "" {
		t.Errorf("the tenant's event (-want +got):\n%s", diff)
	}
}

// TestEventOfAComponent checks that the host of a component of the super
// cluster is not synced up.
func TestEventOfAComponent(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Event]](t, Event())
	super := superEvent()
	super.Source = corev1.EventSource{Component: "scheduler", Host: "control-plane-7"}
	view := kinds.View{
		Tenant: blue, Namespace: "default", Lookup: lookup(map[string]client.Object{"Pod " + superDefault + "/web": &corev1.Pod{ObjectMeta: meta("web")}}),
	}
	if got := k.Desired(view, super).Source; got != (corev1.EventSource{Component: "scheduler"}) {
		t.Errorf("the source is %v", got)
	}
}

// TestEventAboutARenamedObject checks that the event has the tenant's name of
// the object.
func TestEventAboutARenamedObject(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Event]](t, Event())
	super := superEvent()
	super.InvolvedObject.Kind, super.InvolvedObject.Name = "ConfigMap", movedRootCA
	view := kinds.View{Tenant: blue, Namespace: "default", Lookup: lookup(map[string]client.Object{
		"ConfigMap " + superDefault + "/" + movedRootCA: &corev1.ConfigMap{ObjectMeta: meta(rootCA)},
	})}
	if got := k.Desired(view, super); got == nil || got.InvolvedObject.Name != rootCA {
		t.Errorf("the tenant's event is %v, want one about %s", got, rootCA)
	}
}

func TestEventOfNoConcern(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Event]](t, Event())
	elsewhere := &corev1.Pod{ObjectMeta: meta("web")}
	elsewhere.Namespace = "prod"
	tests := map[string]map[string]client.Object{
		"the object is not known":            nil,
		"one of another kind has the name":   {"Secret " + superDefault + "/web": &corev1.Secret{ObjectMeta: meta("web")}},
		"one of another namespace has it":    {"Pod another/web": &corev1.Pod{ObjectMeta: meta("web")}},
		"the object is in another namespace": {"Pod " + superDefault + "/web": elsewhere},
		"the object is in no namespace":      {"Pod " + superDefault + "/web": &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "web"}}},
	}
	for name, known := range tests {
		t.Run(name, func(t *testing.T) {
			view := kinds.View{Tenant: blue, Namespace: "default", Lookup: lookup(known)}
			if got := k.Desired(view, superEvent()); got != nil {
				t.Errorf("the tenant is shown %v", got)
			}
		})
	}
}

// TestEventMerge checks that a recurring event updates the count of the
// tenant's event, and keeps its metadata.
func TestEventMerge(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Event]](t, Event())
	tenant := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.1", UID: "tenant-event-uid", ResourceVersion: "9"},
		Count:      3, Message: "old", Related: &corev1.ObjectReference{Name: "x"},
	}
	desired := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.1"},
		Count:      4, Message: "new", LastTimestamp: metav1.Unix(3, 0),
	}
	want := desired.DeepCopy()
	want.ObjectMeta = *tenant.ObjectMeta.DeepCopy()
	k.Merge(tenant, desired)
	if diff := cmp.Diff(want, tenant); diff != "" {
		t.Errorf("the tenant's event (-want +got):\n%s", diff)
	}
}

// TestEventAboutTokens checks that kubelets' errors about the Secret with the
// tokens of a pod are dropped, and all others are synced up.
func TestEventAboutTokens(t *testing.T) {
	k := kindOf[kinds.Up[*corev1.Event]](t, Event())
	const (
		failed = `MountVolume.SetUp failed for volume "kube-api-access-x" : `
		secret = "web-tokens-4b5e57f6eb" // echo -n web | sha256sum
		noMap  = `configmap "settings" not found`
		unread = "failed to sync secret cache: timed out waiting for the condition"
	)
	missing := `secret "` + secret + `" not found`
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	projected := func(name string, sources ...corev1.VolumeProjection) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
	}
	volumes := []corev1.Volume{
		projected("kube-api-access-x", token), projected("mixed", token, corev1.VolumeProjection{Secret: &corev1.SecretProjection{}}),
		{Name: "db", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}},
	}
	tests := map[string]struct{ message, want string }{
		"the Secret alone":                {failed + missing, ""},
		"twice":                           {failed + "[" + missing + ", " + missing + "]", ""},
		"in two ways":                     {failed + "[" + missing + `, object "` + superDefault + `"/"` + secret + `" not registered]`, ""},
		"similar events":                  {"(combined from similar events): " + failed + missing, ""},
		"by its path":                     {failed + "Get https://super/api/v1/namespaces/" + superDefault + "/secrets/" + secret + ": EOF", ""},
		"by a sentence":                   {"Denied: a container reads " + secret + ".", ""},
		"and one object of the tenant":    {failed + "[" + missing + ", " + noMap + "]", failed + noMap},
		"and several":                     {failed + "[" + noMap + ", " + missing + `, secret "db" not found]`, failed + "[" + noMap + `, secret "db" not found]`},
		"another object alone":            {failed + noMap, failed + noMap},
		"other objects":                   {failed + "[" + noMap + `, secret "db" not found]`, failed + "[" + noMap + `, secret "db" not found]`},
		"a Secret that contains its name": {failed + `secret "my-` + secret + `" not found`, failed + `secret "my-` + secret + `" not found`},
		"not read in time":                {failed + unread, ""},
		"not read in time, and another":   {failed + "[" + unread + ", " + noMap + "]", failed + noMap},
		"not read in time, of a volume with a Secret of the tenant": {
			`MountVolume.SetUp failed for volume "mixed" : ` + unread, `MountVolume.SetUp failed for volume "mixed" : ` + unread,
		},
		"not read in time, of a volume with a Secret alone": {
			`MountVolume.SetUp failed for volume "db" : ` + unread, `MountVolume.SetUp failed for volume "db" : ` + unread,
		},
		"no object": {
			"Unable to attach or mount volumes: unmounted volumes=[kube-api-access-x], unattached volumes=[]: context deadline exceeded",
			"Unable to attach or mount volumes: unmounted volumes=[kube-api-access-x], unattached volumes=[]: context deadline exceeded",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			super := superEvent()
			super.Reason, super.Message = "FailedMount", tt.message
			view := kinds.View{Tenant: blue, Namespace: "default", Lookup: lookup(map[string]client.Object{
				"Pod " + superDefault + "/web": &corev1.Pod{ObjectMeta: meta("web"), Spec: corev1.PodSpec{Volumes: volumes}},
			})}
			got := ""
			if event := k.Desired(view, super); event != nil {
				got = event.Message
			}
			if got != tt.want {
				t.Errorf("the tenant is shown %q, want %q", got, tt.want)
			}
		})
	}
}

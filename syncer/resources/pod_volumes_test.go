package resources

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// access states which tenants may mount a type of volume.
type access string

const (
	everyone  access = "every tenant"
	byPolicy  access = "a tenant whose policy lists it in allowVolumeTypes"
	hostPaths access = "a tenant whose policy has allowHostPath"
	offered   access = "a tenant that is offered the driver"
	noTenant  access = "no tenant"
)

// volumeAccess states for every source of a volume in the API which tenants may
// mount it. A new source fails the test until it is decided.
var volumeAccess = map[string]access{
	"emptyDir": everyone, "configMap": everyone, "secret": everyone, "projected": everyone, "downwardAPI": everyone,
	"persistentVolumeClaim": everyone, "ephemeral": everyone, "image": everyone,
	"hostPath": hostPaths, "csi": offered,
	"gitRepo": noTenant, // runs git as root on the node (CVE-2024-10220)
	"nfs":     byPolicy, "iscsi": byPolicy, "fc": byPolicy, "flexVolume": byPolicy, "gcePersistentDisk": byPolicy,
	"awsElasticBlockStore": byPolicy, "azureDisk": byPolicy, "azureFile": byPolicy, "cinder": byPolicy, "cephfs": byPolicy, "rbd": byPolicy,
	"glusterfs": byPolicy, "vsphereVolume": byPolicy, "portworxVolume": byPolicy, "quobyte": byPolicy, "flocker": byPolicy,
	"photonPersistentDisk": byPolicy, "scaleIO": byPolicy, "storageos": byPolicy,
}

func TestWhoMayMountVolumes(t *testing.T) {
	full := fill(&corev1.Pod{}).Spec.Volumes[0].VolumeSource
	sources := reflect.ValueOf(&full).Elem()
	for i := range sources.NumField() {
		name := jsonName(sources.Type().Field(i))
		t.Run(name, func(t *testing.T) {
			var source corev1.VolumeSource
			reflect.ValueOf(&source).Elem().Field(i).Set(sources.Field(i))
			if source.Projected != nil {
				source.Projected.Sources = nil
			}
			whoMayMount(t, name, source)
		})
	}
	if n := sources.NumField(); n != len(volumeAccess) {
		t.Errorf("the API has %d sources of volumes, and %d are decided", n, len(volumeAccess))
	}
}

// whoMayMount tries a volume in a tenant without permissions, and in others
// with one permission each.
func whoMayMount(t *testing.T, name string, source corev1.VolumeSource) {
	t.Helper()
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	pod := tenantPod(func(p *corev1.Pod) { p.Spec.Volumes = volumes(source) })
	driver := ""
	if source.CSI != nil {
		driver = source.CSI.Driver
	}
	for who, v := range map[access]kinds.View{
		everyone:  offering("CSIDriver"),
		byPolicy:  offering("CSIDriver"),
		hostPaths: offering("CSIDriver"),
		offered:   offering("CSIDriver", driver),
	} {
		switch who {
		case byPolicy:
			for name, access := range volumeAccess {
				if access == byPolicy {
					v.Tenant.Policy.AllowVolumeTypes = append(v.Tenant.Policy.AllowVolumeTypes, tenancyv1alpha1.VolumeType(name))
				}
			}
		case hostPaths:
			v.Tenant.Policy.AllowHostPath = true
		case everyone, offered, noTenant:
		}
		want := volumeAccess[name] == everyone || volumeAccess[name] == who
		err := k.Admit(v, pod)
		if admitted := err == nil; admitted != want {
			t.Errorf("%s may mount it: %t (%v), want %t", who, admitted, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "spec.volumes[0]."+name) {
			t.Errorf("the reason %q does not name the field", err)
		}
	}
}

// TestVolumeOfAnUnknownType checks that a volume of a later Kubernetes release
// is not treated as one without a source, which an apiserver makes an emptyDir.
func TestVolumeOfAnUnknownType(t *testing.T) {
	k := kindOf[kinds.Down[*corev1.Pod]](t, Pod())
	err := k.Admit(view, tenantPod(func(p *corev1.Pod) { p.Spec.Volumes = volumes(corev1.VolumeSource{}) }))
	if err == nil || !strings.Contains(err.Error(), "spec.volumes[0]: Forbidden") {
		t.Errorf("rejected because of %v", err)
	}
}

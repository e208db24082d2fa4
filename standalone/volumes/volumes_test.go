package volumes

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func waiting(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "data", UID: "1",
		Annotations: map[string]string{provisioner: provisionerName, selectedNode: "worker"},
	}}
	claim.Spec.StorageClassName = new(className)
	change(claim)
	return claim
}

func TestWhichClaimsWait(t *testing.T) {
	c := &claims{dir: Directory{Node: "worker"}}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"ours":                  {func(*corev1.PersistentVolumeClaim) {}, true},
		"bound":                 {func(p *corev1.PersistentVolumeClaim) { p.Spec.VolumeName = "v" }, false},
		"going":                 {func(p *corev1.PersistentVolumeClaim) { p.DeletionTimestamp = new(metav1.Now()) }, false},
		"of another":            {func(p *corev1.PersistentVolumeClaim) { p.Annotations[provisioner] = "other" }, false},
		"of a pod that waits":   {func(p *corev1.PersistentVolumeClaim) { delete(p.Annotations, selectedNode) }, false},
		"of a pod on elsewhere": {func(p *corev1.PersistentVolumeClaim) { p.Annotations[selectedNode] = "other" }, false},
	} {
		if got := c.waits(waiting(test.change)); got != test.want {
			t.Errorf("a claim that is %s: %t, want %t", name, got, test.want)
		}
	}
}

func TestWhichClaimsFit(t *testing.T) {
	c := &claims{}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"a directory":    {func(*corev1.PersistentVolumeClaim) {}, true},
		"a selector":     {func(p *corev1.PersistentVolumeClaim) { p.Spec.Selector = &metav1.LabelSelector{} }, false},
		"a block device": {func(p *corev1.PersistentVolumeClaim) { p.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, false},
	} {
		if err := c.fits(waiting(test.change)); (err == nil) != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVolumeIsItsClaims(t *testing.T) {
	c := &claims{dir: Directory{There: "/var/lib/volumes", Node: "worker"}}
	volume := c.volume(waiting(func(*corev1.PersistentVolumeClaim) {}))
	if ref := volume.Spec.ClaimRef; ref.Namespace != "ns" || ref.Name != "data" || ref.UID != "1" {
		t.Errorf("the volume is for %v", ref)
	}
	if volume.Spec.Local.Path != "/var/lib/volumes/pvc-1" || volume.Spec.StorageClassName != className {
		t.Errorf("the volume is at %s, of class %s", volume.Spec.Local.Path, volume.Spec.StorageClassName)
	}
}

func TestDirectoryOfAVolume(t *testing.T) {
	d := Directory{Here: filepath.Join(t.TempDir(), "volumes")}
	if err := d.make(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(d.Here, "pvc-1", "data")
	for range 2 { // the second time finds it as it is
		if err := d.add("pvc-1"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(data, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Dir(data)); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("every user should have a use for the directory, which is %v, %v", info, err)
	}
	for range 2 { // what is gone is no error
		if err := d.remove("pvc-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the data is still there")
	}
}

package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// attachPod holds back a new copy until the provider of its network has prepared
// it, and keeps it until the provider has released it.
func attachPod(tenant, copied *corev1.Pod) error {
	gate := corev1.PodSchedulingGate{Name: networkv1.ReadinessGate}
	switch {
	case slices.Contains(copied.Spec.SchedulingGates, gate):
		return fmt.Errorf("spec.schedulingGates: remove %s, which is the platform's", networkv1.ReadinessGate)
	case copied.Spec.NodeName != "":
		return errors.New("spec.nodeName: remove it: the pod is scheduled when its network has been prepared for it")
	}
	if text, asks := tenant.Annotations[networkv1.NICAnnotation]; asks {
		nic, err := network.ParseNIC(text)
		if err != nil {
			return fmt.Errorf("metadata.annotations[%s]: %w", networkv1.NICAnnotation, err)
		}
		data, err := json.Marshal(nic)
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&copied.ObjectMeta, networkv1.NICAnnotation, string(data))
	}
	metav1.SetMetaDataAnnotation(&copied.ObjectMeta, networkv1.ReadinessAnnotation, "false")
	copied.Finalizers = append(copied.Finalizers, networkv1.Finalizer)
	copied.Spec.SchedulingGates = append(copied.Spec.SchedulingGates, gate)
	return nil
}

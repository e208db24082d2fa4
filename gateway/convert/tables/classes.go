package tables

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// cell is a column with one field of an object.
type cell struct{ name, path string }

// fields are the columns of kinds between the name and the age.
var fields = map[string][]cell{
	"PriorityClass": {{"Value", "value"}, {"Global-Default", "globalDefault"}, {"PreemptionPolicy", "preemptionPolicy"}},
	"RuntimeClass":  {{"Handler", "handler"}},
	"IngressClass":  {{"Controller", "spec.controller"}},
	"StorageClass": {
		{"Provisioner", "provisioner"}, {"ReclaimPolicy", "reclaimPolicy"},
		{"VolumeBindingMode", "volumeBindingMode"}, {"AllowVolumeExpansion", "allowVolumeExpansion"},
	},
	"VolumeAttributesClass": {{"DriverName", "driverName"}},
	"CSIDriver": {
		{"AttachRequired", "spec.attachRequired"}, {"PodInfoOnMount", "spec.podInfoOnMount"},
		{"StorageCapacity", "spec.storageCapacity"},
	},
	"PersistentVolume": {
		{"Capacity", "spec.capacity.storage"}, {"Reclaim Policy", "spec.persistentVolumeReclaimPolicy"}, {"Status", "status.phase"},
		{"Claim", "spec.claimRef.name"}, {"StorageClass", "spec.storageClassName"},
	},
	"IPAddress":          {{"ParentRef", "spec.parentRef.name"}},
	"ServiceCIDR":        {{"CIDRs", "spec.cidrs"}},
	"APIService":         {{"Version", "spec.version"}},
	"CSIStorageCapacity": {{"StorageClassName", "storageClassName"}, {"Capacity", "capacity"}},
	"VolumeAttachment": {
		{"Attacher", "spec.attacher"}, {"PV", "spec.source.persistentVolumeName"},
		{"Node", "spec.nodeName"}, {"Attached", "status.attached"},
	},
	"ResourceSlice": {{"Node", "spec.nodeName"}, {"Driver", "spec.driver"}, {"Pool", "spec.pool.name"}},
	"FlowSchema": {
		{"PriorityLevel", "spec.priorityLevelConfiguration.name"}, {"MatchingPrecedence", "spec.matchingPrecedence"},
	},
	"PriorityLevelConfiguration": {{"Type", "spec.type"}},
}

// columnsOf returns the columns of a kind: those of an apiserver for roles and
// bindings, and the most important ones for others.
func columnsOf(kind string) columns {
	if found, ok := byKind[kind]; ok {
		return found
	}
	definitions := []metav1.TableColumnDefinition{nameColumn}
	for _, each := range fields[kind] {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: each.name, Type: text})
	}
	definitions = append(definitions, ageColumn)
	return columns{definitions, func(object map[string]any) ([]any, error) { return fieldCells(object, fields[kind]) }}
}

func fieldCells(object map[string]any, of []cell) ([]any, error) {
	var partial metav1.PartialObjectMetadata
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": object["metadata"]}, &partial); err != nil {
		return nil, err
	}
	cells := []any{partial.Name}
	for _, each := range of {
		value, _, err := unstructured.NestedFieldNoCopy(object, strings.Split(each.path, ".")...)
		if err != nil {
			return nil, err
		}
		if value == nil {
			value = "<none>"
		}
		cells = append(cells, fmt.Sprint(value))
	}
	return append(cells, age(partial.ObjectMeta)), nil
}

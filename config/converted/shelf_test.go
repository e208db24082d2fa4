package converted_test

import (
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtualcluster/virtualcluster/config/converted"
)

// definitions returns the mirror definitions by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	objects, err := converted.Read()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
			t.Fatal(err)
		}
		found[definition.Spec.Names.Kind] = definition
	}
	return found
}

// TestSchemas: each field of the types is in the schemas, so that the super cluster
// prunes none.
func TestSchemas(t *testing.T) {
	found := definitions(t)
	for kind, object := range map[string]any{
		"Role": rbacv1.Role{}, "RoleBinding": rbacv1.RoleBinding{}, "ClusterRole": rbacv1.ClusterRole{}, "ClusterRoleBinding": rbacv1.ClusterRoleBinding{},
		"IPAddress": networkingv1.IPAddress{}, "ServiceCIDR": networkingv1.ServiceCIDR{},
		"PersistentVolume": corev1.PersistentVolume{},
		"PriorityClass":    schedulingv1.PriorityClass{}, "RuntimeClass": nodev1.RuntimeClass{}, "IngressClass": networkingv1.IngressClass{},
		"StorageClass": storagev1.StorageClass{}, "VolumeAttributesClass": storagev1.VolumeAttributesClass{}, "CSIDriver": storagev1.CSIDriver{},
		"CSINode": storagev1.CSINode{}, "CSIStorageCapacity": storagev1.CSIStorageCapacity{}, "VolumeAttachment": storagev1.VolumeAttachment{},
		"DeviceClass": resourcev1.DeviceClass{}, "ResourceSlice": resourcev1.ResourceSlice{},
		"CertificateSigningRequest": certificatesv1.CertificateSigningRequest{},
		"FlowSchema":                flowcontrolv1.FlowSchema{}, "PriorityLevelConfiguration": flowcontrolv1.PriorityLevelConfiguration{},
		"ValidatingWebhookConfiguration":   admissionregistrationv1.ValidatingWebhookConfiguration{},
		"MutatingWebhookConfiguration":     admissionregistrationv1.MutatingWebhookConfiguration{},
		"ValidatingAdmissionPolicy":        admissionregistrationv1.ValidatingAdmissionPolicy{},
		"ValidatingAdmissionPolicyBinding": admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
		"MutatingAdmissionPolicy":          admissionregistrationv1.MutatingAdmissionPolicy{},
		"MutatingAdmissionPolicyBinding":   admissionregistrationv1.MutatingAdmissionPolicyBinding{},
	} {
		if found[kind] == nil {
			t.Errorf("%s has no definition", kind)
			continue
		}
		covers(t, kind, reflect.TypeOf(object), found[kind].Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
}

// covers reports the fields of a type that a schema lacks.
func covers(t *testing.T, at string, of reflect.Type, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch of.Kind() { //nolint:exhaustive // the others have no fields
	case reflect.Pointer:
		covers(t, at, of.Elem(), schema)
	case reflect.Slice:
		if of.Elem().Kind() != reflect.Uint8 { // bytes are a string
			covers(t, at, of.Elem(), schema.Items.Schema)
		}
	case reflect.Struct:
		if of == reflect.TypeFor[resource.Quantity]() || of == reflect.TypeFor[metav1.Time]() || of == reflect.TypeFor[intstr.IntOrString]() {
			return // one value
		}
		for field := range of.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if options == "inline" {
				covers(t, at, field.Type, schema)
			}
			if name == "" || name == "-" || name == "metadata" {
				continue
			}
			below, ok := schema.Properties[name]
			if !ok {
				t.Errorf("the schema lacks %s.%s", at, name)
				continue
			}
			covers(t, at+"."+name, field.Type, &below)
		}
	}
}

// TestDefinitionsAreValid: an apiserver accepts them, the costs of their rules
// included.
func TestDefinitionsAreValid(t *testing.T) {
	for kind, definition := range definitions(t) {
		definition.Status.StoredVersions = []string{"v1"}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(definition)
		apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
		internal := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(definition, internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), internal) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

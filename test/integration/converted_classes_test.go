package integration

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("Classes of a converted tenant", Ordered, ContinueOnFailure, func() {
	var red, blue *kit.Converted
	storageClass := func(name string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/disk"}
	}

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		red, blue = converter.Tenant(ctx, "team-0a1b2c-classes"), converter.Tenant(ctx, "team-9d8e7f-classes")
		kit.Create(ctx, red.Client, namespaceOf("shop"))
		offered, hidden := storageClass("converted-offered"), storageClass("converted-hidden")
		offered.Labels = map[string]string{names.Public: "true", "tier": "gold"}
		kit.Create(ctx, super.Client, offered, hidden)
		DeferCleanup(func(ctx SpecContext) {
			for _, class := range []*storagev1.StorageClass{offered, hidden} {
				Expect(super.Client.Delete(ctx, class)).To(Succeed())
			}
		})
	})

	It("are its own, without an effect, with the defaults of a cluster", func(ctx SpecContext) {
		for _, tenant := range []*kit.Converted{red, blue} {
			kit.Create(ctx, tenant.Client, storageClass("mine"))
		}
		mine := storageClass("mine")
		Expect(kit.Get(ctx, red.Client, mine)).To(Succeed())
		Expect(*mine.ReclaimPolicy).To(BeEquivalentTo("Delete"))
		Expect(*mine.VolumeBindingMode).To(BeEquivalentTo("Immediate"))
		Expect(kit.Get(ctx, super.Client, storageClass("mine"))).To(MatchError(apierrors.IsNotFound, "not found"))
		kit.Edit(ctx, red.Client, mine, func(s *storagev1.StorageClass) { s.AllowVolumeExpansion = new(true) })
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}},"mountOptions":["ro"]}`))
		Expect(red.Client.Patch(ctx, mine, patch)).To(Succeed())
		Expect(mine.MountOptions).To(Equal([]string{"ro"}))
		changed := client.RawPatch(types.MergePatchType, []byte(`{"provisioner":"example.com/other"}`))
		err := red.Client.Patch(ctx, mine.DeepCopy(), changed)
		Expect(err).To(MatchError(apierrors.IsInvalid, "invalid"))
		Expect(err).To(MatchError(ContainSubstring("provisioner: Invalid value: \"example.com/other\": field is immutable")))
		Expect(red.Client.DeleteAllOf(ctx, &storagev1.StorageClass{}, client.MatchingLabels{"a": "b"})).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, mine)
		Expect(kit.Get(ctx, blue.Client, storageClass("mine"))).To(Succeed())
	})

	It("are those that the platform offers, too, which it only reads", func(ctx SpecContext) {
		var all storagev1.StorageClassList
		Expect(red.Client.List(ctx, &all)).To(Succeed())
		Expect(keysOf(all.Items)).To(ContainElement("/converted-offered"))
		Expect(keysOf(all.Items)).NotTo(ContainElement("/converted-hidden"))
		Expect(red.Client.List(ctx, &all, client.MatchingLabels{"tier": "silver"})).To(Succeed())
		Expect(all.Items).To(BeEmpty())
		offered := storageClass("converted-offered")
		Expect(kit.Get(ctx, red.Client, offered)).To(Succeed())
		Expect(offered.Labels).To(Equal(map[string]string{"tier": "gold"}))
		Expect(offered.ManagedFields).To(BeEmpty())
		Expect(kit.Get(ctx, red.Client, storageClass("converted-hidden"))).To(MatchError(apierrors.IsNotFound, "not found"))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
		for _, err := range []error{red.Client.Delete(ctx, offered.DeepCopy()), red.Client.Patch(ctx, offered.DeepCopy(), patch)} {
			Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"))
			Expect(err).To(MatchError(ContainSubstring("the platform offers it")))
		}
		Expect(red.Client.Create(ctx, storageClass("converted-offered"))).To(MatchError(apierrors.IsAlreadyExists, "already exists"))
		w, err := red.Client.Watch(ctx, &storagev1.StorageClassList{}, client.MatchingFields{"metadata.name": offered.Name})
		Expect(err).NotTo(HaveOccurred())
		defer w.Stop()
		var event watch.Event
		Eventually(w.ResultChan()).Should(Receive(&event))
		Expect(event.Object.(*storagev1.StorageClass).Name).To(Equal(offered.Name))
		p := programs{dir: kit.TempDir(), kubeconfig: red.Kubeconfig()}
		p.does(ctx, "example.com/disk", "get", "storageclass", offered.Name)
	})

	It("have a status where a cluster has one", func(ctx SpecContext) {
		schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{GenerateName: "mine-"}}
		schema.Spec.PriorityLevelConfiguration.Name = "exempt"
		kit.Create(ctx, red.Client, schema)
		schema.Status.Conditions = []flowcontrolv1.FlowSchemaCondition{{Type: "Dangling", Status: "True", LastTransitionTime: metav1.Now()}}
		Expect(red.Client.Status().Update(ctx, schema)).To(Succeed())
		Expect(schema.Status.Conditions).To(HaveLen(1))
		Expect(schema.APIVersion + schema.ManagedFields[0].APIVersion).NotTo(ContainSubstring("shelved"))
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Value: 7}
		kit.Create(ctx, red.Client, class)
		class.Value = 70
		Expect(red.Client.Update(ctx, class)).To(MatchError(apierrors.IsInvalid, "invalid"))
		capacity := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}, StorageClassName: "mine"}
		kit.Create(ctx, red.Client, capacity)
		var capacities storagev1.CSIStorageCapacityList
		Expect(red.Client.List(ctx, &capacities)).To(Succeed())
		Expect(keysOf(capacities.Items)).To(Equal([]string{"shop/a"}))
	})

	It("sees the volumes of its claims, without their place, and has others without an effect", func(ctx SpecContext) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data"}}
		claim.Spec.AccessModes, claim.Spec.Resources.Requests = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, kit.Amounts("storage", "1Gi")
		claim.Spec.StorageClassName = new("converted-none")
		kit.Create(ctx, red.Client, claim)
		volume := func(name string, ref *corev1.ObjectReference) *corev1.PersistentVolume {
			v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": "secret"}}}
			v.Spec.Capacity, v.Spec.AccessModes, v.Spec.ClaimRef = kit.Amounts("storage", "1Gi"), claim.Spec.AccessModes, ref
			v.Spec.NFS, v.Spec.StorageClassName = &corev1.NFSVolumeSource{Server: "secret.example.com", Path: "/"}, "converted-none"
			return v
		}
		ofRed := volume("converted-red", &corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: names.SuperNamespace(red.Key, "shop"), Name: "data", UID: claim.UID,
		})
		reserved := volume("converted-reserved", &corev1.ObjectReference{Namespace: names.SuperNamespace(red.Key, "shop"), Name: "other"})
		kit.Create(ctx, super.Client, ofRed, reserved, volume("converted-free", nil))
		DeferCleanup(func(ctx SpecContext) {
			for _, name := range []string{"converted-red", "converted-reserved", "converted-free"} {
				Expect(super.Client.Delete(ctx, volume(name, nil))).To(Succeed())
			}
		})
		mine := volume("mine", &corev1.ObjectReference{Namespace: "shop", Name: "data"})
		kit.Create(ctx, red.Client, mine)
		Expect(mine.Status.Phase).To(Equal(corev1.VolumePending))
		var volumes corev1.PersistentVolumeList
		Eventually(func() ([]string, error) {
			err := red.Client.List(ctx, &volumes)
			return keysOf(volumes.Items), err
		}).Should(Equal([]string{"/converted-red", "/mine"}))
		shown := volumes.Items[0]
		Expect(shown.Labels).To(BeEmpty())
		Expect(shown.Spec.NFS).To(BeNil())
		Expect(shown.Spec.ClaimRef).To(Equal(&corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: claim.UID,
		}))
		Expect(blue.Client.List(ctx, &volumes)).To(Succeed())
		Expect(volumes.Items).To(BeEmpty())
		Expect(kit.Get(ctx, blue.Client, volume("converted-red", nil))).To(MatchError(apierrors.IsNotFound, "not found"))
		Expect(kit.Get(ctx, super.Client, volume("mine", nil))).To(MatchError(apierrors.IsNotFound, "not found"))
		Expect(red.Client.Delete(ctx, volume("converted-red", nil))).To(MatchError(apierrors.IsForbidden, "forbidden"))
		mine.Status.Message = "of mine"
		Expect(red.Client.Status().Update(ctx, mine)).To(Succeed())
		Expect(red.Client.Delete(ctx, mine)).To(Succeed())
		Expect(kit.Get(ctx, red.Client, mine)).To(MatchError(`persistentvolumes "mine" not found`))
		p := programs{dir: kit.TempDir(), kubeconfig: red.Kubeconfig()}
		Eventually(kit.Read(ctx, super.Client, ofRed)).Should(HaveField("Status.Phase", corev1.VolumeBound))
		p.does(ctx, "Bound", "get", "pv", "converted-red")
	})

	It("has addresses and ranges of its own, which are not those of Services", func(ctx SpecContext) {
		address := &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "fe80::42:1dff:fe84:f9e2"}}
		address.Spec.ParentRef = &networkingv1.ParentReference{Resource: "a", Name: "b"}
		ranges := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"192.0.2.0/24"}}}
		kit.Create(ctx, red.Client, address, ranges)
		Expect(kit.Get(ctx, super.Client, address.DeepCopy())).To(MatchError(apierrors.IsNotFound, "not found"))
		Expect(kit.Get(ctx, super.Client, ranges.DeepCopy())).To(MatchError(apierrors.IsNotFound, "not found"))
		var all networkingv1.ServiceCIDRList
		Expect(red.Client.List(ctx, &all)).To(Succeed())
		Expect(keysOf(all.Items)).To(Equal([]string{"/mine"}), "the platform does not offer its own")
	})

	It("has CSINodes without drivers", func(ctx SpecContext) {
		kit.Create(ctx, red.Client, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	})

	It("has no DaemonSets, and lists none", func(ctx SpecContext) {
		var sets appsv1.DaemonSetList
		Expect(red.Client.List(ctx, &sets, client.InNamespace("kube-system"))).To(Succeed())
		Expect(sets.Items).To(BeEmpty())
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
		Expect(red.Client.Create(ctx, set)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		Expect(red.Client.Get(ctx, client.ObjectKeyFromObject(set), set)).To(MatchError(apierrors.IsNotFound, "not found"))
	})

	It("has claims of devices, which it does not allocate", func(ctx SpecContext) {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "example.com"}}}
		kit.Create(ctx, red.Client, claim)
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: claim.ObjectMeta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim.Spec}}
		template.ResourceVersion, template.UID = "", ""
		kit.Create(ctx, red.Client, template)
		claim.Status.Allocation = &resourcev1.AllocationResult{}
		Expect(red.Client.Status().Update(ctx, claim)).To(MatchError(ContainSubstring("changing status.allocation")))
		var all resourcev1.ResourceClaimList
		Expect(red.Client.List(ctx, &all)).To(Succeed())
		Expect(keysOf(all.Items)).To(Equal([]string{"shop/a"}))
	})

	It("has objects that do not say their type, as a cluster has", func(ctx SpecContext) {
		path := "/apis/scheduling.k8s.io/v1/priorityclasses"
		reply := red.Ask(ctx, http.MethodPost, path, `{"metadata":{"name":"untyped"},"value":1}`)
		Expect(reply.Code).To(Equal(http.StatusCreated), reply.Body)
		Expect(reply.Body).To(ContainSubstring(`"kind":"PriorityClass"`))
		reply = red.Ask(ctx, http.MethodPut, path+"/untyped", `{"metadata":{"name":"untyped"},"value":1,"preemptionPolicy":"PreemptLowerPriority"}`)
		Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
		reply = red.Ask(ctx, http.MethodPut, path+"/untyped", `{"metadata":{"name":"untyped"},"value":1,"description":"with the default"}`)
		Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
		reply = red.Ask(ctx, http.MethodPut, path+"/untyped", `{"metadata":{"name":"untyped"},"value":1,"preemptionPolicy":"Never"}`)
		Expect(reply.Code).To(Equal(http.StatusUnprocessableEntity), reply.Body)
	})

	It("are read and deleted as metadata alone", func(ctx SpecContext) {
		const path, meta = "/apis/scheduling.k8s.io/v1/priorityclasses", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
		held := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}}, Value: 7}
		kit.Create(ctx, red.Client, held)
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			reply := red.Ask(ctx, method, path+"/held", "", "Accept", meta)
			Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
			Expect(reply.Body).To(SatisfyAll(ContainSubstring(`"kind":"PartialObjectMetadata"`), Not(ContainSubstring(`"value"`))))
		}
		reply := red.Ask(ctx, http.MethodGet, path, "", "Accept", strings.Replace(meta, ";g", "List;g", 1))
		Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
		Expect(reply.Body).To(ContainSubstring(`"kind":"PartialObjectMetadataList"`))
		Expect(kit.Get(ctx, red.Client, held)).To(Succeed())
		held.Finalizers = nil
		Expect(red.Client.Update(ctx, held)).To(Succeed())
		kit.ShouldVanish(ctx, red.Client, held)
		kit.Create(ctx, red.Client, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "free"}, Value: 7})
		reply = red.Ask(ctx, http.MethodDelete, path+"/free", "", "Accept", meta)
		Expect(reply.Code).To(Equal(http.StatusOK), reply.Body)
		Expect(reply.Body).To(ContainSubstring(`"status":"Success"`))
	})

	It("gets no Table of a review", func(ctx SpecContext) {
		body := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}`
		reply := red.Ask(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		Expect(reply.Code).To(Equal(http.StatusNotAcceptable), reply.Body)
	})

	It("finds all kinds in OpenAPI v2", func() {
		schemas, err := discovery.NewDiscoveryClientForConfigOrDie(red.Config).OpenAPISchema()
		Expect(err).NotTo(HaveOccurred())
		var found []string
		for _, definition := range schemas.GetDefinitions().GetAdditionalProperties() {
			found = append(found, definition.GetName())
		}
		Expect(found).To(ContainElements("io.k8s.api.core.v1.Pod", "io.k8s.api.storage.v1.StorageClass"))
		Expect(found).NotTo(ContainElement(ContainSubstring("x-k8s")))
		Expect(found).NotTo(ContainElement(ContainSubstring("DeviceTaintRule")))
	})
})

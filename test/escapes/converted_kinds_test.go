package escapes

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
)

var _ = Describe("The kinds of a converted tenant", Ordered, ContinueOnFailure, func() {
	const secret = "the-rack-of-the-platform"
	var (
		alice, mallory *kit.Converted
		node           *corev1.Node
	)

	BeforeAll(func(ctx SpecContext) {
		converter := kit.StartConverter(ctx, super)
		alice, mallory = converter.Tenant(ctx, "team-0a1b2c-akinds"), converter.Tenant(ctx, "team-9d8e7f-mkinds")
		for _, tenant := range []*kit.Converted{alice, mallory} {
			kit.Create(ctx, tenant.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		}
		node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "hidden-node", Labels: map[string]string{"example.com/rack": secret}, Annotations: map[string]string{"example.com/rack": secret},
		}}
		kit.Create(ctx, super.Client, node)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, node)).To(Succeed()) })
	})

	attack("nodes of others and their labels, by names, selectors, forms and watches", "idea: a selector is evaluated before what a tenant may not see is removed", func(ctx SpecContext) {
		const nodes = "/api/v1/nodes"
		for _, path := range []string{
			nodes, nodes + "/" + node.Name, nodes + "/" + node.Name + "/status", nodes + "/" + node.Name + "/proxy/pods", nodes + "?limit=1",
			nodes + "?labelSelector=" + url.QueryEscape("example.com/rack="+secret), nodes + "?fieldSelector=metadata.name%3D" + node.Name,
			nodes + "?watch=1&timeoutSeconds=1&labelSelector=" + url.QueryEscape("example.com/rack="+secret),
			nodes + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
			"/api/v1/proxy/nodes/" + node.Name, "/api/v1/watch/nodes", "/api/v1/watch/nodes/" + node.Name,
		} {
			for _, accept := range []string{
				"application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
				"application/vnd.kubernetes.protobuf",
			} {
				reply := mallory.Ask(ctx, http.MethodGet, path, "", "Accept", accept)
				Expect(reply.Body).NotTo(ContainSubstring(string(node.UID)), path)
				Expect(reply.Body).NotTo(ContainSubstring(`"`+secret+`"`), path)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			for _, path := range []string{nodes, nodes + "/" + node.Name, nodes + "/" + node.Name + "/status"} {
				Expect(mallory.Ask(ctx, method, path, "{}", "Content-Type", "application/merge-patch+json").Code).To(BeElementOf(
					http.StatusForbidden, http.StatusMethodNotAllowed), method+" "+path)
			}
		}
		found := node.DeepCopy()
		Expect(kit.Get(ctx, super.Client, found)).To(Succeed())
	})

	attack("servers of others, by the address and the state of a pod that the apiserver connects to, and by steps in the path", "design: proxy redirects; idea: an address is given to another's pod", func(ctx SpecContext) {
		pod := kit.Pod("shop", "relay")
		kit.Create(ctx, mallory.Client, pod)
		const path = "/api/v1/namespaces/shop/pods/relay"
		for mediaType, body := range map[string]string{
			"application/merge-patch+json":           `{"status":{"podIP":"192.0.2.1"}}`,
			"application/strategic-merge-patch+json": `{"status":{"podIPs":[{"ip":"192.0.2.1"}]}}`,
			"application/json-patch+json":            `[{"op":"add","path":"/status/podIP","value":"192.0.2.1"}]`,
			"application/apply-patch+yaml":           `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"relay"},"status":{"podIP":"192.0.2.1","podIPs":[{"ip":"192.0.2.1"}]}}`,
		} {
			reply := mallory.Ask(ctx, http.MethodPatch, path+"/status?fieldManager=a&force=true", body, "Content-Type", mediaType)
			Expect(reply.Code).To(BeElementOf(http.StatusUnprocessableEntity, http.StatusBadRequest), mediaType+": "+reply.Body)
		}
		Expect(kit.Get(ctx, mallory.Client, pod)).To(Succeed())
		Expect(pod.Status.PodIP).NotTo(Equal("192.0.2.1"))
		ofAlice := names.SuperNamespace(alice.Key, "shop")
		for _, rest := range []string{
			"/proxy/../../../" + ofAlice + "/secrets", "/proxy/%2e%2e/%2e%2e/%2e%2e/" + ofAlice + "/secrets", "/proxy/..%2f..%2f..%2f" + ofAlice + "%2fsecrets",
			"%2fproxy/a", "/proxy/./a", "/proxyx",
		} {
			Expect(mallory.Ask(ctx, http.MethodGet, path+rest, "").Code).To(BeElementOf(http.StatusBadRequest, http.StatusNotFound), rest)
		}
	})

	attack("names of the super cluster, by the form of an error that its apiserver returns for a proxy", "idea: a client chooses the form of an error", func(ctx SpecContext) {
		const path = "/api/v1/namespaces/shop/services/unserved/proxy"
		kit.Create(ctx, mallory.Client, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "unserved"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
		for _, accept := range []string{
			runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR, "text/html", "*/*",
		} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
				for _, at := range []string{path, path + "/", strings.Replace(path, "unserved", "https:unserved:9", 1), strings.Replace(path, "services", "pods", 1)} {
					reply := mallory.Ask(ctx, method, at, "", "Accept", accept)
					Expect(reply.Code).To(BeNumerically(">=", http.StatusMovedPermanently), method+" "+at)
					Expect(reply.Body).NotTo(ContainSubstring(mallory.Key), method+" "+at+" "+accept)
				}
			}
		}
	})

	attack("devices of others, by the allocation of a claim, and by access of an admin", "idea: the scheduler believes what a claim says", func(ctx SpecContext) {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "greedy"}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "example.com"}}}
		admin := claim.DeepCopy()
		admin.Name, admin.Spec.Devices.Requests[0].Exactly.AdminAccess = "admin", new(true)
		kit.Create(ctx, mallory.Client, claim)
		Expect(mallory.Client.Create(ctx, admin)).To(MatchError(ContainSubstring("access to devices that others use")))
		result := resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: "example.com", Pool: "node", Device: "gpu-0"}
		for name, change := range map[string]func(*resourcev1.ResourceClaimStatus){
			"a device": func(s *resourcev1.ResourceClaimStatus) {
				s.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}}}
			},
			"a user": func(s *resourcev1.ResourceClaimStatus) {
				s.Allocation = &resourcev1.AllocationResult{}
				s.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "a", UID: "1"}}
			},
		} {
			changed := claim.DeepCopy()
			change(&changed.Status)
			Expect(mallory.Client.Status().Update(ctx, changed)).To(MatchError(ContainSubstring("changing status.allocation")), name)
		}
		set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "everywhere"}}
		Expect(mallory.Client.Create(ctx, set)).To(MatchError(apierrors.IsForbidden, "forbidden"))
		reply := mallory.Ask(ctx, http.MethodPatch, "/apis/apps/v1/namespaces/shop/daemonsets/everywhere?fieldManager=a",
			`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"everywhere"}}`, "Content-Type", "application/apply-patch+yaml")
		Expect(reply.Code).To(Equal(http.StatusForbidden))
	})

	attack("classes of the platform, by their names, and by objects that would hold for all", "idea: a class is found by its name", func(ctx SpecContext) {
		hidden := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "hidden-class"}, Provisioner: secret}
		offered := hidden.DeepCopy()
		offered.Name, offered.Labels = "offered-class", map[string]string{names.Public: "true"}
		kit.Create(ctx, super.Client, hidden, offered)
		DeferCleanup(func(ctx SpecContext) {
			Expect(super.Client.Delete(ctx, hidden)).To(Succeed())
			Expect(super.Client.Delete(ctx, offered)).To(Succeed())
		})
		const classes = "/apis/storage.k8s.io/v1/storageclasses"
		for _, path := range []string{
			classes + "/hidden-class", classes + "?labelSelector=" + url.QueryEscape("!"+names.Public), classes + "?fieldSelector=metadata.name%3Dhidden-class",
			classes + "/offered-class%2f..%2fhidden-class", "/apis/storage.k8s.io/v1beta1/storageclasses/hidden-class",
		} {
			Expect(mallory.Ask(ctx, http.MethodGet, path, "").Body).NotTo(ContainSubstring(secret), path)
		}
		for _, name := range []string{"..", "../storageclasses/offered-class", "."} {
			body := `{"metadata":{"name":"` + name + `"},"provisioner":"mine"}`
			Expect(mallory.Ask(ctx, http.MethodPost, classes, body).Code).To(BeElementOf(http.StatusUnprocessableEntity, http.StatusBadRequest), name)
		}
		for _, method := range []string{http.MethodPut, http.MethodDelete} {
			body := `{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass","metadata":{"name":"offered-class"},"provisioner":"mine"}`
			Expect(mallory.Ask(ctx, method, classes+"/offered-class", body).Code).To(BeElementOf(http.StatusForbidden, http.StatusBadRequest), method)
		}
		Expect(mallory.Client.DeleteAllOf(ctx, &storagev1.StorageClass{})).To(Succeed())
		Expect(kit.Get(ctx, super.Client, hidden)).To(Succeed())
		Expect(kit.Get(ctx, super.Client, offered)).To(Succeed())
		for path, of := range map[string]client.Object{
			"/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas": &flowcontrolv1.FlowSchema{Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence: 1, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "exempt"},
			}},
			"/apis/scheduling.k8s.io/v1/priorityclasses": &schedulingv1.PriorityClass{Value: 1000000000, GlobalDefault: true},
			"/apis/storage.k8s.io/v1/csidrivers":         &storagev1.CSIDriver{},
		} {
			of.SetName("mallory")
			Expect(mallory.Client.Create(ctx, of)).To(Succeed(), path)
			Expect(kit.Get(ctx, super.Client, of)).To(MatchError(apierrors.IsNotFound, "not found"), path)
			Expect(alice.Ask(ctx, http.MethodGet, path+"/mallory", "").Code).To(Equal(http.StatusNotFound), path)
		}
	})

	attack("a certificate of the super cluster, by a request that the tenant approves", "design: kube-apiserver-client CSR", func(ctx SpecContext) {
		const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		data, err := cert.MakeCSR(key, &pkix.Name{CommonName: "mallory", Organization: []string{"system:masters"}}, nil, nil)
		Expect(err).NotTo(HaveOccurred())
		request := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "mallory"}}
		request.Spec.Request, request.Spec.SignerName = data, certificatesv1.KubeAPIServerClientSignerName
		request.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
		kit.Create(ctx, mallory.Client, request)
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
		Expect(mallory.Client.SubResource("approval").Update(ctx, request)).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(kit.Get(ctx, mallory.Client, request)).To(Succeed())
			g.Expect(request.Status.Certificate).To(BeEmpty())
		}).WithTimeout(2 * time.Second).Should(Succeed())
		Expect(kit.Get(ctx, super.Client, request.DeepCopy())).To(MatchError(apierrors.IsNotFound, "not found"))
		for _, path := range []string{requests + "/mallory", requests + "/mallory/status", requests + "/mallory/approval"} {
			Expect(alice.Ask(ctx, http.MethodGet, path, "").Code).To(Equal(http.StatusNotFound), path)
			reply := mallory.Ask(ctx, http.MethodPatch, path+"?fieldManager=a&force=true",
				`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"mallory"},"spec":{"username":"admin"}}`,
				"Content-Type", "application/apply-patch+yaml")
			Expect(reply.Code).To(Equal(http.StatusForbidden), path)
		}
	})

	attack("requests that the super cluster's apiserver sends, by an APIService", "design: APIService is refused", func(ctx SpecContext) {
		const services = "/apis/apiregistration.k8s.io/v1/apiservices"
		for _, name := range []string{"v1.mallory.example.com", "v1.apps"} {
			body := `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"` + name + `"},` +
				`"spec":{"group":"apps","version":"v1","groupPriorityMinimum":1,"versionPriority":1,"insecureSkipTLSVerify":true,"service":{"namespace":"shop","name":"a"}}}`
			for method, path := range map[string]string{
				http.MethodPost: services, http.MethodPut: services + "/" + name, http.MethodPatch: services + "/" + name + "?fieldManager=a",
				http.MethodDelete: services + "/" + name,
			} {
				Expect(mallory.Ask(ctx, method, path, body, "Content-Type", "application/json").Code).To(Equal(http.StatusForbidden), method)
			}
			Expect(mallory.Ask(ctx, http.MethodPut, services+"/"+name+"/status", body).Code).To(Equal(http.StatusForbidden))
		}
		Expect(mallory.Ask(ctx, http.MethodGet, services, "").Body).NotTo(ContainSubstring("tenancy.x-k8s.io"))
	})

	attack("volumes of others, by their names, and by volumes and claims that name each other", "design: another's volume handle", func(ctx SpecContext) {
		const volumes = "/api/v1/persistentvolumes"
		hidden := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "hidden-volume"}}
		hidden.Spec.Capacity, hidden.Spec.AccessModes = kit.Amounts("storage", "1Gi"), []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		hidden.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: secret}
		hidden.Spec.ClaimRef = &corev1.ObjectReference{Namespace: names.SuperNamespace(alice.Key, "shop"), Name: "data", UID: "of-alice"}
		kit.Create(ctx, super.Client, hidden)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, hidden)).To(Succeed()) })
		Eventually(kit.Read(ctx, super.Client, hidden)).Should(HaveField("Status.Phase", Not(Equal(corev1.VolumePending))))
		for _, path := range []string{
			volumes, volumes + "/hidden-volume", volumes + "/hidden-volume/status", volumes + "?fieldSelector=metadata.name%3Dhidden-volume",
			volumes + "?watch=1&timeoutSeconds=1",
		} {
			for _, tenant := range []*kit.Converted{alice, mallory} {
				reply := tenant.Ask(ctx, http.MethodGet, path, "")
				Expect(reply.Body).NotTo(ContainSubstring(secret), path)
				if tenant == mallory {
					Expect(reply.Body).NotTo(ContainSubstring(string(hidden.UID)), path)
				}
			}
		}
		own := hidden.DeepCopy()
		own.ResourceVersion, own.UID, own.Name = "", "", "mallory"
		own.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "greedy"}
		kit.Create(ctx, mallory.Client, own)
		Expect(kit.Get(ctx, super.Client, own.DeepCopy())).To(MatchError(apierrors.IsNotFound, "not found"))
		for _, name := range []string{"mallory", "hidden-volume"} {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "greedy"}}
			claim.Spec.AccessModes, claim.Spec.Resources.Requests, claim.Spec.VolumeName = own.Spec.AccessModes, own.Spec.Capacity, name
			Expect(mallory.Client.Create(ctx, claim)).To(MatchError(apierrors.IsInvalid, "invalid"), name)
		}
		for method, path := range map[string]string{
			http.MethodPut: volumes + "/hidden-volume", http.MethodDelete: volumes + "/hidden-volume", http.MethodPatch: volumes + "/hidden-volume/status",
		} {
			reply := mallory.Ask(ctx, method, path, `{"metadata":{"name":"hidden-volume"}}`, "Content-Type", "application/json")
			Expect(reply.Code).To(BeElementOf(http.StatusNotFound, http.StatusUnsupportedMediaType), method)
		}
		Expect(mallory.Client.DeleteAllOf(ctx, &corev1.PersistentVolume{})).To(Succeed())
		Expect(kit.Get(ctx, super.Client, hidden.DeepCopy())).To(Succeed())
	})
})

package escapes

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/kit"
	"github.com/virtualcluster/virtualcluster/test/local"
)

// pairs are labels or annotations.
type pairs = map[string]string

// keysOf returns the keys of an object's labels and annotations.
func keysOf(obj client.Object) []string {
	return slices.Concat(slices.Collect(maps.Keys(obj.GetLabels())), slices.Collect(maps.Keys(obj.GetAnnotations())))
}

// metadata are labels and annotations that an attack gives to an object.
type metadata struct{ labels, annotations pairs }

// on adds them to an object.
func (m metadata) on(obj client.Object) {
	add := func(to, more pairs) pairs {
		all := pairs{}
		maps.Copy(all, more)
		maps.Copy(all, to)
		return all
	}
	obj.SetLabels(add(obj.GetLabels(), m.labels))
	obj.SetAnnotations(add(obj.GetAnnotations(), m.annotations))
}

// shouldStay asserts that the copy of an object exists and that its metadata is
// not what the tenant's object has: not when the copy is made, and not when the
// tenant takes the metadata away and gives it again.
func (m metadata) shouldStay(ctx context.Context, t *local.Tenant, obj client.Object) {
	GinkgoHelper()
	m.on(obj)
	kit.Create(ctx, t.Client, obj)
	copied := kit.SuperOf(t, obj)
	kit.ShouldExist(ctx, super.Client, copied)
	Expect(keysOf(copied)).To(m.beAbsent())
	was := obj.DeepCopyObject().(client.Object)
	kit.Edit(ctx, t.Client, obj, func(obj client.Object) {
		for key := range m.labels {
			obj.SetLabels(without(obj.GetLabels(), key))
		}
		obj.SetAnnotations(nil)
	})
	kit.Edit(ctx, t.Client, obj, func(obj client.Object) {
		obj.SetLabels(was.GetLabels())
		obj.SetAnnotations(was.GetAnnotations())
	})
	Consistently(kit.Read(ctx, super.Client, copied)).WithTimeout(kit.Quiet / 3).Should(WithTransform(keysOf, m.beAbsent()))
}

// beAbsent matches keys among which none of them is.
func (m metadata) beAbsent() types.GomegaMatcher {
	return Not(ContainElement(Satisfy(func(key string) bool {
		_, label := m.labels[key]
		_, annotation := m.annotations[key]
		return label || annotation
	})))
}

// without returns labels without one.
func without(labels pairs, key string) pairs {
	labels = maps.Clone(labels)
	delete(labels, key)
	return labels
}

var _ = Describe("Labels and annotations that the super cluster obeys", Ordered, func() {
	const ns = "metadata"
	var mallory *local.Tenant

	BeforeAll(func(ctx SpecContext) {
		mallory = tenant(ctx, func(vc *tenancyv1alpha1.VirtualCluster) {
			vc.Spec.Sync = &tenancyv1alpha1.SyncSpec{}
			for _, kind := range []tenancyv1alpha1.OptionalKind{"ConfigMap", "Secret", "ResourceClaimTemplate"} {
				vc.Spec.Sync.Kinds = append(vc.Spec.Sync.Kinds, tenancyv1alpha1.KindSync{Kind: kind, Mode: tenancyv1alpha1.SyncAll})
			}
		})
		kit.Create(ctx, mallory.Client, kit.Namespace(ns))
	})

	attack("a namespace that the platform's NetworkPolicies let in by its label", "review: all labels of namespaces were synced", func(ctx SpecContext) {
		platform, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: pairs{"team": "platform"}})
		Expect(err).NotTo(HaveOccurred())
		forged := kit.Namespace("let-in")
		metadata{labels: pairs{"team": "platform", "example.com/trusted": "yes"}}.shouldStay(ctx, mallory, forged)
		list := &corev1.NamespaceList{}
		Expect(super.Client.List(ctx, list, client.MatchingLabelsSelector{Selector: platform})).To(Succeed())
		Expect(list.Items).NotTo(ContainElement(HaveField("Name", mallory.Super(forged.Name))))
	})

	attack("a namespace that admission policies leave out by its label", "Gatekeeper documentation: Exempting Namespaces", func(ctx SpecContext) {
		metadata{labels: pairs{
			"admission.gatekeeper.sh/ignore": "mallory", "policies.kyverno.io/ignore": "true", "control-plane": "controller-manager",
		}}.shouldStay(ctx, mallory, kit.Namespace("unguarded"))
	})

	attack("a namespace with a lower level of Pod Security", "Kubernetes documentation: Pod Security Admission", func(ctx SpecContext) {
		in := kit.Namespace("privileged")
		in.Labels = pairs{"pod-security.kubernetes.io/enforce": "privileged", "pod-security.kubernetes.io/enforce-version": "v1.0"}
		kit.Create(ctx, mallory.Client, in)
		p := kit.Pod(in.Name, "root", func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		})
		kit.Create(ctx, mallory.Client, p)
		shouldBeRejected(ctx, mallory, p, `violates PodSecurity "baseline:latest"`)
		copied := kit.SuperOf(mallory, in)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "baseline"))
		Expect(copied.Labels).NotTo(HaveKey("pod-security.kubernetes.io/enforce-version"))
	})

	attack("a namespace that a service mesh joins", "Istio documentation: Installing the Sidecar", func(ctx SpecContext) {
		metadata{
			labels:      pairs{"istio-injection": "enabled", "istio.io/rev": "canary", "istio.io/dataplane-mode": "ambient"},
			annotations: pairs{"linkerd.io/inject": "enabled", "scheduler.alpha.kubernetes.io/node-selector": "pool=platform"},
		}.shouldStay(ctx, mallory, kit.Namespace("meshed"))
	})

	attack("devices by the Container Device Interface's annotation", "CDI specification: Kubernetes annotations", func(ctx SpecContext) {
		metadata{annotations: pairs{"cdi.k8s.io/all": "nvidia.com/gpu=all"}}.shouldStay(ctx, mallory, kit.Pod(ns, "devices"))
	})

	attack("instructions to a container runtime", "Kata Containers and CRI-O documentation: annotations", func(ctx SpecContext) {
		metadata{annotations: pairs{
			"io.katacontainers.config.hypervisor.path": "/bin/sh", "io.kubernetes.cri-o.Devices": "/dev/sda",
			"io.kubernetes.cri.untrusted-workload": "true", "org.systemd.property.DeviceAllow": "'block-*'",
		}}.shouldStay(ctx, mallory, kit.Pod(ns, "runtime"))
	})

	attack("a pod that says of itself which namespace it is in", "CVE-2023-39347: Cilium, labels of pods", func(ctx SpecContext) {
		metadata{labels: pairs{
			"io.kubernetes.pod.namespace": "kube-system", "io.cilium.k8s.policy.serviceaccount": "admin",
			"io.cilium.k8s.namespace.labels.team": "platform",
		}}.shouldStay(ctx, mallory, kit.Pod(ns, "labels"))
	})

	attack("a pod with a cloud identity", "kube2iam, Azure Workload Identity and AAD Pod Identity documentation", func(ctx SpecContext) {
		metadata{
			labels:      pairs{"azure.workload.identity/use": "true", "aadpodidbinding": "platform-admin"},
			annotations: pairs{"iam.amazonaws.com/role": "admin", "azure.workload.identity/inject-proxy-sidecar": "true"},
		}.shouldStay(ctx, mallory, kit.Pod(ns, "identity"))
	})

	attack("a pod that a kubelet takes for one of its own", "Kubernetes documentation: kubernetes.io/config.mirror", func(ctx SpecContext) {
		metadata{annotations: pairs{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "0"}}.
			shouldStay(ctx, mallory, kit.Pod(ns, "static"))
	})

	attack("other networks for a pod", "Multus documentation: default network annotation", func(ctx SpecContext) {
		metadata{annotations: pairs{
			"k8s.v1.cni.cncf.io/networks": "kube-system/host", "v1.multus-cni.io/default-network": "kube-system/host",
			"k8s.ovn.org/pod-networks": "{}", "cni.projectcalico.org/ipAddrs": `["10.0.0.1"]`, "ovn.kubernetes.io/ip_address": "10.0.0.1",
		}}.shouldStay(ctx, mallory, kit.Pod(ns, "network"))
	})

	attack("a pod that holds its node against the autoscaler and the descheduler", "Cluster Autoscaler FAQ", func(ctx SpecContext) {
		metadata{annotations: pairs{
			"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true",
			"descheduler.alpha.kubernetes.io/evict": "true",
		}}.shouldStay(ctx, mallory, kit.Pod(ns, "held"))
	})

	attack("requests of the platform's monitoring to any address", "Prometheus: scrape annotations; Filebeat: hints", func(ctx SpecContext) {
		metadata{annotations: pairs{
			"prometheus.io/scrape": "true", "prometheus.io/path": "/latest/meta-data", "ad.datadoghq.com/main.checks": "{}",
			"co.elastic.logs/processors.add_fields.target": "tenant",
		}}.shouldStay(ctx, mallory, kit.Pod(ns, "scraped"))
	})

	attack("a label with a meaning that a running pod is given later", "review: labels are mutable", func(ctx SpecContext) {
		p := kit.Pod(ns, "later")
		kit.Create(ctx, mallory.Client, p)
		copied := kit.SuperOf(mallory, p)
		kit.ShouldExist(ctx, super.Client, copied)
		forged := metadata{
			labels:      pairs{"sidecar.istio.io/inject": "true", names.VCName: "other", names.OwnIngress: "true"},
			annotations: pairs{"cdi.k8s.io/all": "nvidia.com/gpu=all", names.Cluster: "other"},
		}
		kit.Edit(ctx, mallory.Client, p, func(p *corev1.Pod) {
			forged.on(p)
			p.Labels["round"] = "2"
		})
		Eventually(kit.Read(ctx, super.Client, copied)).Should(HaveField("Labels", HaveKeyWithValue("round", "2")))
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Labels).To(HaveKeyWithValue(names.VCName, mallory.VC.Name))
		Expect(copied.Annotations).To(HaveKeyWithValue(names.Cluster, mallory.Key()))
		Expect(keysOf(copied)).NotTo(ContainElement(BeElementOf("sidecar.istio.io/inject", "cdi.k8s.io/all", names.OwnIngress)))
	})

	attack("the translated key of another label", "review: two keys that become one", func(ctx SpecContext) {
		own, forged := kit.Pod(ns, "own-key"), kit.Pod(ns, "forged-key")
		own.Labels["example.com/tier"] = "front"
		forged.Labels[names.Label("example.com/tier")] = "front"
		kit.Create(ctx, mallory.Client, own, forged)
		kit.ShouldExist(ctx, super.Client, kit.SuperOf(mallory, own))
		copied := kit.SuperOf(mallory, forged)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Labels).NotTo(HaveKey(names.Label("example.com/tier")))
		Expect(copied.Labels).To(HaveKeyWithValue(names.Label(names.Label("example.com/tier")), "front"))
	})

	attack("a service account with a cloud role", "AWS, Google and Azure documentation: workload identities", func(ctx SpecContext) {
		metadata{
			labels: pairs{"azure.workload.identity/use": "true"},
			annotations: pairs{
				"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/admin", "iam.gke.io/gcp-service-account": "admin@example.com",
				"azure.workload.identity/client-id": "admin",
			},
		}.shouldStay(ctx, mallory, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "admin"}})
	})

	attack("a load balancer, an address and a DNS name by annotation", "documentation of cloud providers, MetalLB and external-dns", func(ctx SpecContext) {
		metadata{
			labels: pairs{"service.kubernetes.io/service-proxy-name": "platform"},
			annotations: pairs{
				"service.beta.kubernetes.io/aws-load-balancer-security-groups": "sg-platform", "metallb.io/allow-shared-ip": "platform",
				"metallb.universe.tf/loadBalancerIPs": "192.0.2.1", "external-dns.alpha.kubernetes.io/hostname": "platform.example.com",
				"networking.gke.io/load-balancer-type": "Internal", "cloud.google.com/neg": `{"ingress": true}`,
			},
		}.shouldStay(ctx, mallory, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: pairs{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		})
	})

	attack("a snippet of an Ingress controller's configuration", "CVE-2021-25742: ingress-nginx, snippets read all Secrets", func(ctx SpecContext) {
		offerIngressClass(ctx)
		snippets := ingress(ns, "web", "snippets.example.com")
		snippets.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"snippets.example.com"}}}
		metadata{annotations: pairs{
			"nginx.ingress.kubernetes.io/configuration-snippet": "lua_package_path '/etc/nginx/?.lua';",
			"nginx.ingress.kubernetes.io/auth-url":              "http://169.254.169.254/latest", "cert-manager.io/cluster-issuer": "platform",
			"traefik.ingress.kubernetes.io/router.middlewares": "kube-system-auth@kubernetescrd", "haproxy.org/backend-config-snippet": "x",
		}}.shouldStay(ctx, mallory, snippets)
	})

	attack("a Secret that is replicated from and into other namespaces", "kubernetes-replicator and Reflector documentation", func(ctx SpecContext) {
		metadata{
			labels: pairs{"cnrm.cloud.google.com/managed": "true", "argocd.argoproj.io/secret-type": "cluster"},
			annotations: pairs{
				"replicator.v1.mittwald.de/replicate-from":                   "kube-system/admin",
				"replicator.v1.mittwald.de/replicate-to":                     ".*",
				"reflector.v1.k8s.emberstack.com/reflection-auto-enabled":    "true",
				"reflector.v1.k8s.emberstack.com/reflection-auto-namespaces": "kube-system",
			},
		}.shouldStay(ctx, mallory, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "replica"}})
	})

	attack("a ConfigMap that the platform's tools load from any namespace", "Grafana Helm chart: sidecars", func(ctx SpecContext) {
		metadata{
			labels:      pairs{"grafana_dashboard": "1", "grafana_datasource": "1", "k8s-sidecar": "yes"},
			annotations: pairs{"k8s-sidecar-target-directory": "/etc"},
		}.shouldStay(ctx, mallory, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dashboard"}})
	})

	attack("a claim that is filled from an address in the platform's network", "KubeVirt CDI documentation: import annotations", func(ctx SpecContext) {
		class := &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: "claims-" + mallory.VC.Name, Labels: pairs{names.Public: "true"}},
			Provisioner: "storage.example.com",
		}
		kit.Create(ctx, super.Client, class)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		metadata{
			labels: pairs{"app": "containerized-data-importer", "velero.io/exclude-from-backup": "true"},
			annotations: pairs{
				"cdi.kubevirt.io/storage.import.endpoint": "http://169.254.169.254/", "volume.kubernetes.io/selected-node": "node-1",
			},
		}.shouldStay(ctx, mallory, &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: new(class.Name), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		})
	})

	attack("metadata of claims that the super cluster makes of a template", "review: templates are copied whole", func(ctx SpecContext) {
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gpu"}}
		template.Spec.Labels = pairs{"kueue.x-k8s.io/queue-name": "platform", names.VCName: "other"}
		template.Spec.Annotations = pairs{"cdi.k8s.io/all": "nvidia.com/gpu=all", names.Cluster: "other"}
		kit.Create(ctx, mallory.Client, template)
		copied := kit.SuperOf(mallory, template)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Spec.Labels).To(Equal(pairs{names.VCName: mallory.VC.Name, names.VCNamespace: mallory.VC.Namespace}), "its own project")
		Expect(copied.Spec.Annotations).To(BeEmpty())
	})

	attack("devices that a taint keeps for others", "Kubernetes documentation: device taints and tolerations", func(ctx SpecContext) {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "tainted-" + mallory.VC.Name, Labels: pairs{names.Public: "true"}}}
		kit.Create(ctx, super.Client, class)
		DeferCleanup(func(ctx SpecContext) { Expect(super.Client.Delete(ctx, class)).To(Succeed()) })
		kit.ShouldExist(ctx, mallory.Client, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}})
		template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tainted"}}
		template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: class.Name, Tolerations: []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}},
		}}}
		kit.Create(ctx, mallory.Client, template)
		shouldBeRejected(ctx, mallory, template, "taints keep devices for others")
	})

	attack("endpoints for a Service by a slice with more than it needs", "review: labels of slices", func(ctx SpecContext) {
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: ns, Name: "manual", Labels: pairs{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4,
		}
		metadata{labels: pairs{
			"service.kubernetes.io/service-proxy-name": "platform", "multicluster.kubernetes.io/service-name": "platform", "app": "web",
		}}.shouldStay(ctx, mallory, slice)
		copied := kit.SuperOf(mallory, slice)
		kit.ShouldExist(ctx, super.Client, copied)
		Expect(copied.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, "web"))
	})
})

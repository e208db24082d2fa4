package doctor

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The names of the pods that are connected to, which the policies select.
const (
	open     = "open"
	isolated = "isolated"
)

// The expectations of an attempt to connect.
const (
	ExpectOpen   = "open"
	ExpectClosed = "closed"
)

// ProbeUnexpected is the exit code of an attempt that did not end as expected.
const ProbeUnexpected = 20

// probePort is where pods of the probe listen.
const probePort = 8080

// Labels of the pods.
const (
	probeName   = "tenancy.x-k8s.io/probe"
	probeEgress = "tenancy.x-k8s.io/probe-egress"
	denied      = "denied"
)

// probeNamespace returns a namespace for the pods.
func probeNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "vc-doctor-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
}

// probePolicies deny ingress to one pod, and egress of those with a label.
func probePolicies(namespace string) []client.Object {
	return []client.Object{
		&networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deny-ingress"},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{probeName: isolated}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			},
		},
		&networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deny-egress"},
			Spec: networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{probeEgress: denied}},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			},
		},
	}
}

// server returns a pod that accepts connections.
func (p Probe) server(namespace, name string) *corev1.Pod {
	return p.pod(namespace, name, "serve")
}

// attempt returns a pod that connects to an address, and ends.
func (p Probe) attempt(namespace, name, address, expect string, isolate bool) *corev1.Pod {
	pod := p.pod(namespace, name, "connect", address, "--expect="+expect)
	if isolate {
		pod.Labels[probeEgress] = denied
	}
	return pod
}

// pod returns a pod that runs kubectl-vc probe, in the profile restricted of Pod
// Security.
func (p Probe) pod(namespace, name string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{probeName: name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "probe", Image: p.Image, ImagePullPolicy: corev1.PullIfNotPresent, Args: append([]string{"probe"}, args...),
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					ReadOnlyRootFilesystem:   new(true),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

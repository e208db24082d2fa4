package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/feed"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/internal/etcdtest"
	"github.com/virtualcluster/virtualcluster/standalone/hosted/keyspace"
)

// TestEveryControllerHasANeed: a controller without one would run for every
// tenant, always.
func TestEveryControllerHasANeed(t *testing.T) {
	g := NewWithT(t)
	var names []string
	for _, controller := range append(Tenant(), DaemonSets()) {
		names = append(names, controller.Name)
	}
	g.Expect(slices.Collect(maps.Keys(needs()))).To(ConsistOf(names))
}

// TestNeedsNameResources: a resource that is misspelled would never be counted.
func TestNeedsNameResources(t *testing.T) {
	for name, n := range needs() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(n.pending != nil || len(n.resources) > 0).To(BeTrue())
			g.Expect(n.pending == nil || n.always || len(n.triggers)+len(n.resources) > 0).To(BeTrue(), "nothing triggers it")
			for _, resource := range slices.Concat(n.resources, n.triggers) {
				_, err := keyspace.RecordPrefix("red", resource)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(resource).To(BeElementOf(stored()))
			}
		})
	}
}

// stored returns the prefixes of resources that tenants can have.
func stored() []string {
	return []string{
		"certificatesigningrequests", "clusterroles", "configmaps", "controllers", "cronjobs", "daemonsets", "deployments",
		"horizontalpodautoscalers", "jobs",
		"namespaces", "persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets", "pods", "replicasets", "resourcequotas", "secrets",
		"serviceaccounts", "servicecidrs", "services/endpoints", "services/specs", "statefulsets", "validatingadmissionpolicies",
		"volumeattributesclasses",
	}
}

// object is a stored object.
type object struct {
	key    string
	object runtime.Object
}

// TestPending holds the needs that are not a matter of counting against objects
// in a store.
func TestPending(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	owned := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1"}}
	ready := networkingv1.ServiceCIDRStatus{Conditions: []metav1.Condition{{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue}}}
	namespace := object{"namespaces/team", &corev1.Namespace{}}
	account := object{"serviceaccounts/team/default", &corev1.ServiceAccount{}}
	read := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	aggregated := func(rules ...rbacv1.PolicyRule) object {
		return object{"clusterroles/all", &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: rules,
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"of": "all"}}}},
		}}
	}
	part := object{"clusterroles/part", &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "part", Labels: map[string]string{"of": "all"}}, Rules: []rbacv1.PolicyRule{read},
	}}
	bundle := func(ca string) object {
		return object{"configmaps/team/kube-root-ca.crt", &corev1.ConfigMap{Data: map[string]string{"ca.crt": ca}}}
	}
	disrupted := func(change func(*corev1.Pod), status corev1.ConditionStatus) object {
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: status}}}}
		change(pod)
		return object{"pods/team/x", pod}
	}
	policy := func(generation, observed int64) object {
		return object{"validatingadmissionpolicies/x", &admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Status:     admissionregistrationv1.ValidatingAdmissionPolicyStatus{ObservedGeneration: observed},
		}}
	}
	kv, client := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var number atomic.Int32
	for name, test := range map[string]struct {
		controller string
		objects    []object
		changed    []string // all when nil
		want       bool
	}{
		"no namespace":                   {controller: "serviceaccount-controller"},
		"a service account":              {controller: "serviceaccount-controller", objects: []object{namespace, account}},
		"no service account":             {controller: "serviceaccount-controller", objects: []object{namespace}, want: true},
		"that of another namespace":      {controller: "serviceaccount-controller", objects: []object{namespace, account, {"namespaces/other", &corev1.Namespace{}}}, want: true},
		"no bundle":                      {controller: "root-ca-certificate-publisher-controller", objects: []object{namespace}, want: true},
		"a bundle":                       {controller: "root-ca-certificate-publisher-controller", objects: []object{namespace, bundle("the CA")}},
		"another bundle":                 {controller: "root-ca-certificate-publisher-controller", objects: []object{namespace, bundle("forged")}, want: true},
		"a namespace":                    {controller: "namespace-controller", objects: []object{namespace}},
		"a deleted namespace":            {controller: "namespace-controller", objects: []object{{"namespaces/team", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}}}, want: true},
		"a namespace that is damaged":    {controller: "namespace-controller", objects: []object{{"namespaces/team", nil}}, want: true},
		"no dependents":                  {controller: "garbage-collector-controller", objects: []object{namespace, account}},
		"a dependent":                    {controller: "garbage-collector-controller", objects: []object{{"configmaps/team/x", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned}}}}, want: true},
		"a dependent that was there":     {controller: "garbage-collector-controller", objects: []object{{"configmaps/team/x", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned}}}}, changed: []string{"pods"}},
		"a dependent among what changed": {controller: "garbage-collector-controller", objects: []object{{"pods/team/x", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned}}}}, changed: []string{"pods"}, want: true},
		"a dependent custom resource":    {controller: "garbage-collector-controller", objects: []object{{"example.com/widgets/team/x", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned}}}}, want: true},
		"events with an owner":           {controller: "garbage-collector-controller", objects: []object{{"events/team/x", &corev1.Event{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owned}}}}},
		"a deletion in the foreground":   {controller: "garbage-collector-controller", objects: []object{{"pods/team/x", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{metav1.FinalizerDeleteDependents}}}}}, want: true},
		"a deletion that orphans":        {controller: "garbage-collector-controller", objects: []object{{"pods/team/x", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{metav1.FinalizerOrphanDependents}}}}}, want: true},
		"an aggregated role":             {controller: "clusterrole-aggregation-controller", objects: []object{part, aggregated(read)}},
		"a stale role":                   {controller: "clusterrole-aggregation-controller", objects: []object{part, aggregated()}, want: true},
		"a role with rules of its own":   {controller: "clusterrole-aggregation-controller", objects: []object{aggregated(read)}, want: true},
		"no Job":                         {controller: "job-controller", objects: []object{{"pods/team/x", &corev1.Pod{}}}},
		"a Job":                          {controller: "job-controller", objects: []object{{"jobs/team/x", &batchv1.Job{}}}, want: true},
		"a pod of a Job that is gone":    {controller: "job-controller", objects: []object{{"pods/team/x", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{batchv1.JobTrackingFinalizer}}}}}, want: true},
		"the apiserver's Service":        {controller: "endpoints-controller", objects: []object{{"services/specs/default/kubernetes", &corev1.Service{}}}},
		"another Service":                {controller: "endpoints-controller", objects: []object{{"services/specs/team/kubernetes", &corev1.Service{}}}, want: true},
		"two Services":                   {controller: "endpointslice-controller", objects: []object{{"services/specs/default/kubernetes", &corev1.Service{}}, {"services/specs/team/x", &corev1.Service{}}}, want: true},
		"a range of addresses":           {controller: "service-cidr-controller", objects: []object{{"servicecidrs/x", &networkingv1.ServiceCIDR{Status: ready}}}},
		"a range that is not ready":      {controller: "service-cidr-controller", objects: []object{{"servicecidrs/x", &networkingv1.ServiceCIDR{}}}, want: true},
		"a range that is being deleted":  {controller: "service-cidr-controller", objects: []object{{"servicecidrs/x", &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: ready}}}, want: true},
		"no budget":                      {controller: "disruption-controller", objects: []object{disrupted(func(*corev1.Pod) {}, "")}},
		"a disruption that did not come": {controller: "disruption-controller", objects: []object{disrupted(func(*corev1.Pod) {}, corev1.ConditionTrue)}, want: true},
		"a disruption that was reset":    {controller: "disruption-controller", objects: []object{disrupted(func(*corev1.Pod) {}, corev1.ConditionFalse)}},
		"a disruption by a kubelet":      {controller: "disruption-controller", objects: []object{disrupted(func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonTerminationByKubelet }, corev1.ConditionTrue)}},
		"a disrupted pod that has ended": {controller: "disruption-controller", objects: []object{disrupted(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, corev1.ConditionTrue)}},
		"a disrupted pod that ends":      {controller: "disruption-controller", objects: []object{disrupted(func(p *corev1.Pod) { p.DeletionTimestamp = &now }, corev1.ConditionTrue)}},
		"a budget":                       {controller: "disruption-controller", objects: []object{{"poddisruptionbudgets/team/x", &policyv1.PodDisruptionBudget{}}}, want: true},
		"no policy":                      {controller: "validatingadmissionpolicy-status-controller"},
		"a policy":                       {controller: "validatingadmissionpolicy-status-controller", objects: []object{policy(2, 1)}, want: true},
		"a policy that is checked":       {controller: "validatingadmissionpolicy-status-controller", objects: []object{policy(2, 2)}},
		"objects of another tenant":      {controller: "deployment-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			tenant := fmt.Sprintf("red-%d.", number.Add(1)) // no name begins another
			write(g, client, "/"+tenant+"1/deployments/team/x", []byte("{}"))
			for _, each := range test.objects {
				write(g, client, "/"+tenant+"/"+each.key, encode(g, each.object))
			}
			s := &state{feed: source, tenant: tenant, authority: []byte("the CA")}
			if test.changed != nil {
				s.changed = map[string]bool{}
				for _, resource := range test.changed {
					s.changed[resource] = true
				}
			}
			needed, err := needs()[test.controller].arises(t.Context(), s)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(needed).To(Equal(test.want))
		})
	}
}

func write(g Gomega, client *clientv3.Client, key string, value []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := client.Put(ctx, keyspace.Root+key[1:], string(value))
	g.Expect(err).NotTo(HaveOccurred())
}

// encode returns an object as apiservers store it; nil is not decodable.
func encode(g Gomega, object runtime.Object) []byte {
	if object == nil {
		return []byte("damaged")
	}
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	g.Expect(ok).To(BeTrue())
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	g.Expect(err).NotTo(HaveOccurred())
	versions := []schema.GroupVersion{kinds[0].GroupVersion()}
	data, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersions(versions)), object)
	g.Expect(err).NotTo(HaveOccurred())
	return data
}

// TestNeedOfAStoreThatFails: an error is reported, and is no reason to do
// without a controller.
func TestNeedOfAStoreThatFails(t *testing.T) {
	kv, _ := etcdtest.Start(t)
	source, err := feed.New(t.Context(), feed.Embedded(kv))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	ended, end := context.WithCancel(t.Context())
	end()
	NewWithT(t).Expect(source.Run(ended)).To(Succeed())
	for name, n := range needs() {
		t.Run(name, func(t *testing.T) {
			_, err := n.arises(t.Context(), &state{feed: source, tenant: "red"})
			NewWithT(t).Expect(errors.Is(err, feed.ErrEnded)).To(BeTrue(), "%v", err)
		})
	}
}

// TestBrokenNeed: a panic while the objects of a tenant are read is an error.
func TestBrokenNeed(t *testing.T) {
	broken := &part{need: pendingBy(func(context.Context, *state) (bool, error) { panic("a broken need") })}
	_, err := broken.isNeeded(t.Context(), &state{})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("a broken need")))
}

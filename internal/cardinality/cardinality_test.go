package cardinality

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/metrics"
)

func TestLimits(t *testing.T) {
	limits := Limits()
	for key, tc := range map[string]struct{ has, hasNot []string }{
		"apiserver_request_total,group": {
			[]string{"", "apps", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "tenancy.x-k8s.io"},
			[]string{"example.com"},
		},
		"apiserver_request_total,version":     {[]string{"", "v1", "v1beta1", "v1alpha1"}, []string{"v3000"}},
		"apiserver_request_total,resource":    {[]string{"", "pods", "endpoints", "networkpolicies", "virtualclusters"}, []string{"podlists", "deleteoptions", "widgets"}},
		"apiserver_request_total,subresource": {[]string{"", "status", "exec"}, []string{"/livez"}},
		"apiserver_request_total,code":        {[]string{"200", "404", "504"}, []string{"", "477", "600"}},
		"etcd_requests_total,resource":        {[]string{"pods"}, []string{"widgets"}},
		// Of these labels, no value is known.
		"apiserver_request_terminations_total,group":            {[]string{""}, []string{"apps"}},
		"apiserver_admission_webhook_request_total,name":        {[]string{""}, nil},
		"job_controller_jobs_finished_total,reason":             {[]string{"", "BackoffLimitExceeded"}, []string{"MyReason"}},
		"kube_apiserver_clusterip_allocator_allocated_ips,cidr": {[]string{""}, []string{"10.0.0.0/16"}},
	} {
		values := strings.Split(limits[key], ",")
		for _, value := range tc.has {
			if !slices.Contains(values, value) {
				t.Errorf("%s does not allow %q: %q", key, value, values)
			}
		}
		for _, value := range tc.hasNot {
			if slices.Contains(values, value) {
				t.Errorf("%s allows %q", key, value)
			}
		}
	}
}

// TestEnforce tests that upstream makes no series of a name.
func TestEnforce(t *testing.T) {
	Enforce()
	Enforce()
	counter := metrics.NewCounterVec(
		&metrics.CounterOpts{Name: "aggregator_unavailable_apiservice_total", Help: "As upstream's."}, []string{"name", "reason"},
	)
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(counter)
	for _, name := range []string{"v1.a.example.com", "v1.b.example.com", ""} {
		counter.WithLabelValues(name, "Unavailable").Inc()
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, metric := range families[0].GetMetric() {
		names = append(names, metric.GetLabel()[0].GetValue())
	}
	if want := []string{"", "unexpected"}; !slices.Equal(names, want) {
		t.Errorf("got series of %q, want %q", names, want)
	}
}

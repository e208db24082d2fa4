package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// is compares a result with the verdict and a part of the message.
func is(t *testing.T, got Result, verdict Verdict, part string) {
	t.Helper()
	if got.Verdict != verdict || !strings.Contains(got.Message, part) {
		t.Errorf("got %s: %s\nwant %s: …%s…", got.Verdict, got.Message, verdict, part)
	}
	if got.Verdict == Failed && got.Next == "" {
		t.Errorf("%s: the next step is missing", got.Message)
	}
}

func TestVersionVerdict(t *testing.T) {
	for server, want := range map[string]Verdict{
		"v1.32.9": Failed, "v1.33.0": OK, "v1.36.3": OK, "v1.37.0-rc.1": OK, "v1.38.0": Warning, "v1.34.1+k3s1": OK, "v2.0.0": OK,
		"unknown": Warning, "v1.29.4-gke.100": Failed,
	} {
		t.Run(server, func(t *testing.T) { is(t, versionVerdict(server), want, server) })
	}
}

func TestClientMinor(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("k8s.io/client-go v0.%d.", clientMinor); !strings.Contains(string(data), want) {
		t.Errorf("go.mod has no %s", want)
	}
}

func TestClockVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		drift time.Duration
		want  Verdict
		part  string
	}{
		"equal":    {0, OK, "agree"},
		"close":    {10 * time.Second, OK, "agree"},
		"ahead":    {11 * time.Second, Warning, "11s ahead"},
		"behind":   {-time.Minute, Warning, "1m0s behind"},
		"too far":  {-5*time.Minute - time.Second, Failed, "5m1s behind"},
		"tomorrow": {24 * time.Hour, Failed, "24h0m0s ahead"},
	} {
		t.Run(name, func(t *testing.T) { is(t, clockVerdict(tt.drift), tt.want, tt.part) })
	}
}

func TestDriftOf(t *testing.T) {
	date := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	at := func(ms int) time.Time { return date.Add(time.Duration(ms) * time.Millisecond) }
	for name, tt := range map[string]struct {
		sent, received int
		want           time.Duration
	}{
		"within the second":          {200, 900, 0},
		"sent in the same second":    {-300, 100, 0},
		"received a second later":    {900, 1900, 0},
		"the server is ahead":        {-5000, -4000, 4 * time.Second},
		"the server is behind":       {4000, 5000, -3 * time.Second},
		"a slow request proves less": {-9000, 9000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := driftOf(at(tt.sent), at(tt.received), date); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestPermissionsVerdict(t *testing.T) {
	is(t, permissionsVerdict(nil), OK, "you may install")
	is(t, permissionsVerdict([]right{{"create", "", "secrets"}, {"bind", "rbac.authorization.k8s.io", "roles"}}), Failed,
		"you may not create secrets, bind roles.rbac.authorization.k8s.io")
	is(t, permissionsVerdict(rightsToInstall()), Failed, " more")
}

func TestAPIsVerdict(t *testing.T) {
	is(t, apisVerdict(nil), OK, "all APIs")
	is(t, apisVerdict([]string{"ipaddresses.networking.k8s.io/v1", "servicecidrs.networking.k8s.io/v1"}), Warning, "serviceAddresses.pool")
	is(t, apisVerdict([]string{"leases.coordination.k8s.io/v1", "servicecidrs.networking.k8s.io/v1"}), Failed, "leases.coordination.k8s.io/v1")
}

func TestStorageVerdict(t *testing.T) {
	class := func(name string, isDefault bool) storagev1.StorageClass {
		c := storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if isDefault {
			c.Annotations = map[string]string{defaultClass: "true"}
		}
		return c
	}
	claim := func(name string, phase corev1.PersistentVolumeClaimPhase) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	for name, tt := range map[string]struct {
		classes []storagev1.StorageClass
		claims  []corev1.PersistentVolumeClaim
		want    Verdict
		part    string
	}{
		"no class":              {nil, nil, Failed, "no StorageClass"},
		"none is the default":   {[]storagev1.StorageClass{class("a", false)}, nil, Failed, "no StorageClass"},
		"a default":             {[]storagev1.StorageClass{class("a", false), class("b", true)}, nil, OK, "b is the default"},
		"several defaults":      {[]storagev1.StorageClass{class("a", true), class("b", true)}, nil, Warning, "a, b"},
		"bound without a class": {nil, []corev1.PersistentVolumeClaim{claim("data-1-vc-store-0", corev1.ClaimBound)}, OK, "has its volumes"},
		"a claim that waits": {
			[]storagev1.StorageClass{class("a", true)}, []corev1.PersistentVolumeClaim{claim("data-1-vc-store-0", corev1.ClaimPending)},
			Failed, "data-1-vc-store-0 of the store has no volume",
		},
	} {
		t.Run(name, func(t *testing.T) { is(t, storageVerdict(tt.classes, tt.claims), tt.want, tt.part) })
	}
}

func TestDomainVerdict(t *testing.T) {
	is(t, domainVerdict("tenants.example.com", nil, errors.New("no such host")), Failed, "below tenants.example.com do not resolve")
	is(t, domainVerdict("tenants.example.com", []string{"192.0.2.1"}, nil), OK, "*.tenants.example.com resolves to 192.0.2.1")
}

func TestDomainOf(t *testing.T) {
	pod := &corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--port=6443", "--endpoint-domain=tenants.example.com"}}}}
	if got := domainOf(pod); got != "tenants.example.com" {
		t.Errorf("got %q", got)
	}
	if got := domainOf(&corev1.PodSpec{}); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestPoliciesVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		seen observed
		want Verdict
		part string
	}{
		"enforced":         {observed{asExpected, asExpected, asExpected, ""}, OK, "ingress and egress"},
		"no network":       {observed{unexpected, asExpected, asExpected, ""}, Failed, "cannot connect to each other"},
		"not enforced":     {observed{asExpected, unexpected, unexpected, ""}, Failed, "not enforced"},
		"for ingress only": {observed{asExpected, asExpected, unexpected, ""}, Failed, "ingress only"},
		"no image":         {observed{unknown, unknown, unknown, "pod open: ErrImagePull"}, Failed, "could not be checked: pod open: ErrImagePull"},
	} {
		t.Run(name, func(t *testing.T) { is(t, policiesVerdict(tt.seen), tt.want, tt.part) })
	}
}

func TestOutcomeOf(t *testing.T) {
	ended := func(code int32) *corev1.Pod {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: state}}}}
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want outcome
	}{
		"as expected":       {ended(0), asExpected},
		"unexpected":        {ended(ProbeUnexpected), unexpected},
		"killed":            {ended(137), unknown},
		"an older image":    {ended(2), unknown},
		"has not ended yet": {&corev1.Pod{}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(tt.pod); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

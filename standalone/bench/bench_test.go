package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestTable(t *testing.T) {
	table := &table{}
	table.add("memory", "MiB", 165.4)
	table.add("time", "s", 0.3, 0.1234)
	table.add("memory", "MiB", 1, 150)
	want := "| figure | unit | min | median | max | values |\n" +
		"|---|---|---|---|---|---|\n" +
		"| memory | MiB | 1 | 150 | 165 | 3 |\n" +
		"| time | s | 0.123 | 0.212 | 0.3 | 2 |\n"
	if got := table.markdown(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestOptions(t *testing.T) {
	opts, err := parseOptions([]string{"--tenants=7", "--figures=ready,memory", "--isolation=Dedicated"})
	if err != nil {
		t.Fatal(err)
	}
	if opts.tenants != 7 || opts.starts != 10 || opts.isolation != "Dedicated" {
		t.Errorf("got %+v", opts)
	}
	if !opts.measures("ready") || opts.measures("requests") {
		t.Errorf("measures %q", opts.figures)
	}
	if opts, err = parseOptions([]string{"--smoke"}); err != nil || opts.runs != 1 || opts.isolation != "Shared" || !opts.measures("requests") {
		t.Errorf("--smoke: %+v (%v)", opts, err)
	}
	for _, args := range [][]string{
		{"--isolation=Nice"}, {"--figures=speed"}, {"--runs=0"}, {"--pods=-1"}, {"--idle=0s"}, {"--settle=-1s"}, {"--fast"},
	} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("accepts %q", args)
		}
	}
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := until(t.Context(), time.Second, "it is done", func() (bool, error) {
			n++
			return n > 2, map[bool]error{true: errors.New("connection refused")}[n == 1]
		})
		if err != nil || n != 3 {
			t.Errorf("%d attempts: %v", n, err)
		}
		err = until(t.Context(), time.Second, "it is done", func() (bool, error) { return true, errors.New("connection refused") })
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait until it is done") ||
			!strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
	})
}

// TestSettled tests that a value is returned once it has not changed by more
// than a percent for a while.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		values := []float64{100, 200, 201, 150, 150.5, 149.5}
		n := 0
		next := func() (float64, error) {
			n++
			return values[min(n, len(values))-1], nil
		}
		begin := time.Now()
		got, err := settled(t.Context(), 10*time.Second, next)
		if err != nil || got != 149.5 {
			t.Errorf("got %v (%v)", got, err)
		}
		if took := time.Since(begin); took != 13*time.Second { // the fourth value comes after three seconds
			t.Errorf("took %s", took)
		}
	})
}

// TestWorkload tests that the objects of the workload can be read, and that the
// webhook gets its address.
func TestWorkload(t *testing.T) {
	hook := newWebhook()
	defer hook.Close()
	var resources []string
	for document := range strings.SplitSeq(workload, "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &obj.Object); err != nil {
			t.Fatal(err)
		}
		resources = append(resources, resourceOf(obj.GroupVersionKind()).Resource)
		if obj.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		setAddress(obj, hook)
		webhooks, _, err := unstructured.NestedSlice(obj.Object, "webhooks")
		if err != nil || len(webhooks) != 1 {
			t.Fatalf("webhooks %v (%v)", webhooks, err)
		}
		if url, _, _ := unstructured.NestedString(webhooks[0].(map[string]any), "clientConfig", "url"); url != hook.URL {
			t.Errorf("the webhook has the address %q", url)
		}
	}
	want := []string{"customresourcedefinitions", "deployments", "jobs", "validatingwebhookconfigurations", "widgets", "configmaps"}
	if !slices.Equal(resources, want) {
		t.Errorf("got %q, want %q", resources, want)
	}
}

func TestWebhook(t *testing.T) {
	hook := newWebhook()
	defer hook.Close()
	for body, admitted := range map[string]bool{
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"}}`: true,
		`{}`:   false,
		`none`: false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, hook.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := hook.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var review admissionv1.AdmissionReview
		err = json.NewDecoder(response.Body).Decode(&review)
		_ = response.Body.Close()
		if got := err == nil && review.Response != nil && review.Response.Allowed && review.Response.UID == "1"; got != admitted {
			t.Errorf("%s: admitted is %t (%s)", body, got, response.Status)
		}
	}
}

// TestCredentials tests that an admin's certificate and that of the server are
// of the authority that clients trust.
func TestCredentials(t *testing.T) {
	creds, err := newCredentials(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(creds.CertData, creds.KeyData); err != nil {
		t.Error(err)
	}
	if _, err := newCredentials("/nowhere"); err == nil {
		t.Error("credentials are written to a directory that does not exist")
	}
}

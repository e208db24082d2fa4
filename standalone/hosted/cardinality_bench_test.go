package hosted_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/virtualcluster/virtualcluster/standalone/hosted"
)

// BenchmarkNamesInMetrics tells what remains of the names of 20,000 webhooks that a
// tenant has had, and what another tenant notices meanwhile. Run it with -benchtime 1x.
func BenchmarkNamesInMetrics(b *testing.B) {
	for range b.N {
		host, hostile, honest := startPair(b, options(b.TempDir()), hosted.Spec{Shared: true})
		b.ReportMetric(live(b), "MB-before")
		b.ReportMetric(series(b), "series-before")
		reportLatency(b, honestRequests(b, honest, 5*time.Second), "alone")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range 40 {
				useWebhooks(b, hostile, fmt.Sprintf("w%d", i), 500)
			}
		}()
		reportLatency(b, untilEnd(b, honest, ended), "beside")
		b.ReportMetric(live(b), "MB-after")
		b.ReportMetric(series(b), "series-after")
		stopBench(b, host)
	}
}

// useWebhooks creates webhooks, writes until their conditions are evaluated, and
// deletes them.
func useWebhooks(b *testing.B, client kubernetes.Interface, name string, number int) {
	b.Helper()
	all := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range number {
		expression := "false"
		if i == number-1 {
			expression = "object.data.none == 'a'" // an error, after those of all others
		}
		configuration.Webhooks = append(configuration.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: fmt.Sprintf("%d.%s.example.com", i, name), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://a.example.com")},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "a", Expression: expression}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		})
	}
	ctx := b.Context()
	if _, err := all.Create(ctx, configuration, metav1.CreateOptions{}); err != nil {
		b.Error(err)
		return
	}
	awaitWrites(ctx, client, false)
	if err := all.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		b.Error(err)
	}
	awaitWrites(ctx, client, true)
}

// awaitWrites waits until writes are admitted, or until they are not.
func awaitWrites(ctx context.Context, client kubernetes.Interface, admitted bool) {
	_ = wait.PollUntilContextCancel(ctx, tick, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "a-"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return (err == nil) == admitted, nil
	})
}

// series is how many series upstream's metrics have, as they are exposed.
func series(b *testing.B) float64 {
	b.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		b.Fatal(err)
	}
	number := 0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			number++
			if histogram := metric.GetHistogram(); histogram != nil {
				number += len(histogram.GetBucket()) + 2 // the last bucket has no entry; sum and count
			}
		}
	}
	return float64(number)
}

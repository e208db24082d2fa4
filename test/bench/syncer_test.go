package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtualcluster/virtualcluster/test/local"
)

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader(`
# TYPE go_goroutines gauge
go_goroutines 453
# TYPE process_open_fds gauge
process_open_fds 17
# TYPE vc_syncer_open_watches gauge
vc_syncer_open_watches{side="super"} 12
vc_syncer_open_watches{side="tenant"} 19
# TYPE vc_syncer_tenants gauge
vc_syncer_tenants{reason="Ready"} 4
vc_syncer_tenants{reason="Unreachable"} 1
# TYPE vc_syncer_patrol_duration_seconds histogram
vc_syncer_patrol_duration_seconds_bucket{le="+Inf"} 6
vc_syncer_patrol_duration_seconds_sum 0.5
vc_syncer_patrol_duration_seconds_count 6
# TYPE vc_syncer_requests_total counter
vc_syncer_requests_total{code="201",resource="pods",side="super",verb="create"} 5
vc_syncer_requests_total{code="409",resource="pods",side="super",verb="create"} 1
vc_syncer_requests_total{code="200",resource="pods",side="tenant",verb="watch"} 2
vc_syncer_requests_total{code="201",resource="tokenreviews",side="super",verb="create"} 3
vc_syncer_requests_total{code="201",resource="subjectaccessreviews",side="super",verb="create"} 3
`))
	if err != nil {
		t.Fatal(err)
	}
	want := sample{
		Goroutines: 453, Files: 17, Watches: 31, Opened: 2, Ready: 4, Patrols: 6, Requests: local.Requests{"super create pods": 6},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSort(t *testing.T) {
	writes, events, reads := sort(local.Requests{
		"super create pods": 1, "tenant patch pods/status": 2, "tenant create events": 4, "tenant patch events": 8,
		"super list pods": 16, "tenant get pods": 32,
	})
	if writes != 3 || events != 12 || reads != 48 {
		t.Errorf("%v write, %v write events, %v read", writes, events, reads)
	}
}

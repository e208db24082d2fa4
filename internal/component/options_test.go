package component

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// servedSince is the mapper of a super cluster that serves the tenancy API from some time on.
type servedSince struct {
	meta.RESTMapper

	since time.Time
	err   error
}

func (s servedSince) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if s.err != nil {
		return nil, s.err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	if !time.Now().Before(s.since) {
		mapper.Add(tenancyv1alpha1.GroupVersion.WithKind("VirtualCluster"), meta.RESTScopeNamespace)
	}
	return mapper.RESTMapping(kind, versions...)
}

func TestAwaitAPI(t *testing.T) {
	tests := map[string]struct {
		later time.Duration
		err   error
		want  string // part of the error; empty for none
		took  time.Duration
	}{
		"the API is there":               {},
		"it is installed at the time":    {later: 1500 * time.Millisecond, took: 2 * time.Second},
		"it is never installed":          {later: time.Hour, want: "install the CRDs", took: apiTimeout},
		"the super cluster is not there": {err: errors.New("connection refused"), want: "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := AwaitAPI(t.Context(), servedSince{since: began.Add(tt.later), err: tt.err}, logr.Discard())
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				switch {
				case tt.want == "" && err != nil:
					t.Error(err)
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("got %v, want %q in it", err, tt.want)
				}
			})
		})
	}
}

func TestAwaitAPIEndsWithItsContext(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	if err := AwaitAPI(ended, servedSince{since: time.Now().Add(time.Hour)}, logr.Discard()); err != nil {
		t.Error(err)
	}
}

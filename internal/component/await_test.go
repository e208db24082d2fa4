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
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// servedSince is the mapper of a super cluster that serves the tenancy API from
// some time on.
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

// fakeManager records the waiter that is added to it.
type fakeManager struct {
	manager.Manager

	mapper meta.RESTMapper
	added  *apiWaiter
}

func (m *fakeManager) GetRESTMapper() meta.RESTMapper { return m.mapper }
func (*fakeManager) GetCache() cache.Cache            { return nil }
func (*fakeManager) GetLogger() logr.Logger           { return logr.Discard() }
func (m *fakeManager) Add(runnable manager.Runnable) error {
	waiter, ok := runnable.(apiWaiter)
	if !ok {
		return errors.New("not a waiter")
	}
	m.added = &waiter
	return nil
}

func TestAwaitAPI(t *testing.T) {
	tests := map[string]struct {
		later time.Duration
		err   error
		ends  time.Duration
		want  string // part of the error; empty for none
		took  time.Duration
	}{
		"the API is there":               {},
		"it is installed at the time":    {later: 1500 * time.Millisecond, took: 2 * time.Second},
		"it is installed an hour later":  {later: time.Hour, took: time.Hour},
		"the program ends before that":   {later: time.Hour, ends: time.Minute, took: time.Minute},
		"the super cluster is not there": {err: errors.New("connection refused"), want: "connection refused"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, end)
				}
				began := time.Now()
				mgr := &fakeManager{mapper: servedSince{since: began.Add(tt.later), err: tt.err}}
				err := AwaitAPI(ctx, mgr)
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q in it", err, tt.want)
				}
				if waits := mgr.added != nil; waits != (tt.later > 0) {
					t.Errorf("the manager waits: %v", waits)
				} else if waits && !mgr.added.GetCache().WaitForCacheSync(context.Background()) {
					t.Error("the manager would wait for ever")
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
			})
		})
	}
}

// TestCheckAPI: the error says what to install.
func TestCheckAPI(t *testing.T) {
	err := checkAPI(servedSince{since: time.Now().Add(time.Hour)})
	if err == nil || !strings.Contains(err.Error(), "install the CRDs") {
		t.Errorf("got %v, want what to install", err)
	}
}

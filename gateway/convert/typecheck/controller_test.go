package typecheck

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checks are the checks of a controller, each of which takes its time.
type checks struct {
	mu   sync.Mutex
	done []string
	took time.Duration
	err  error
}

func (c *checks) check(_ context.Context, key, name string) error {
	time.Sleep(c.took)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = append(c.done, key+"/"+name)
	return c.err
}

func (c *checks) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	done := c.done
	c.done = nil
	return done
}

func (c *checks) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func policy(key, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key, Name: name}}
}

// left returns how many tenants a controller knows.
func (c *Controller) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.tenants)
}

// running runs a test with a controller, with the time of synctest.
func running(t *testing.T, took time.Duration, test func(*Controller, *checks)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		of := &checks{took: took}
		c := New(func(string) http.Handler { return nil }, logr.Discard())
		c.check = of.check
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		working.Go(func() { c.Start(ctx) })
		test(c, of)
		cancel()
		working.Wait()
	})
}

func same(name string) string { return name }

// TestOneTenantDoesNotTakeAll: a tenant with many policies, each of which takes
// long, has its share of the time; another one waits for one check.
func TestOneTenantDoesNotTakeAll(t *testing.T) {
	running(t, 5*time.Second, func(c *Controller, of *checks) {
		handler := c.Handler(same)
		for i := range 100 {
			handler.OnAdd(policy("hostile", fmt.Sprint(i)), true)
		}
		time.Sleep(time.Second)
		handler.OnAdd(policy("quiet", "a"), false)
		time.Sleep(15 * time.Second)
		if done := of.take(); len(done) != 2 || done[1] != "quiet/a" {
			t.Errorf("checked %v", done)
		}
		// Changes do not make it faster.
		for range 1000 {
			handler.OnUpdate(policy("hostile", "0"), policy("hostile", "0"))
			time.Sleep(time.Second)
		}
		if done := of.take(); len(done) != 10 {
			t.Errorf("checked %d policies of a tenant in 1000 s", len(done))
		}
	})
}

// TestCheckedOnce: each policy is checked after each change, those that are gone
// are not, and nothing is left.
func TestCheckedOnce(t *testing.T) {
	running(t, time.Second, func(c *Controller, of *checks) {
		handler := c.Handler(same)
		for _, name := range []string{"a", "b", "c", "a"} {
			handler.OnAdd(policy("red", name), false)
		}
		time.Sleep(time.Millisecond)
		handler.OnDelete(policy("red", "c"))
		handler.OnDelete(policy("red", "c"))
		handler.OnDelete(policy("blue", "a"))
		time.Sleep(time.Hour)
		done := of.take()
		slices.Sort(done)
		if want := []string{"red/a", "red/b"}; !slices.Equal(slices.DeleteFunc(done, func(s string) bool { return s == "red/c" }), want) {
			t.Errorf("checked %v, want %v", done, want)
		}
		handler.OnUpdate(policy("red", "a"), policy("red", "a"))
		time.Sleep(time.Hour)
		if done := of.take(); !slices.Equal(done, []string{"red/a"}) {
			t.Errorf("after a change, checked %v", done)
		}
		if left := c.left(); left > 0 {
			t.Errorf("%d tenants are left", left)
		}
	})
}

// TestErrors: a check that fails is repeated less and less often, and one of a
// tenant that is not served when it is.
func TestErrors(t *testing.T) {
	running(t, time.Millisecond, func(c *Controller, of *checks) {
		of.fail(errNotServed)
		c.Handler(same).OnAdd(policy("red", "a"), false)
		time.Sleep(time.Hour)
		if done := of.take(); len(done) != 1 {
			t.Errorf("of a tenant that is not served, checked %v", done)
		}
		of.fail(errors.New("down"))
		c.Served("red")
		time.Sleep(time.Hour)
		if done := of.take(); len(done) < 5 || len(done) > 30 {
			t.Errorf("with errors, checked %d times", len(done))
		}
		of.fail(nil)
		time.Sleep(time.Hour)
		of.take()
		c.Served("red")
		time.Sleep(time.Hour)
		if done := of.take(); len(done) > 0 || c.left() > 0 {
			t.Errorf("after success, checked %v", done)
		}
	})
}

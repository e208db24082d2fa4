package networktest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// makes checks that a network becomes ready, and stays as it is until it is
// deleted.
func makes(ctx context.Context, b *bench) error {
	n := b.Network()
	first, err := b.ensure(ctx, n)
	if err != nil {
		return err
	}
	external := n.Spec.HasExternalAddresses()
	if external && first.DNSServiceIP == "" {
		return errors.New("a network with external addresses is ready without the address of its DNS service")
	}
	if err := b.same(ctx, n, first); err != nil {
		return err
	}
	return errors.Join(b.remove(ctx, n), b.remove(ctx, n))
}

// same checks that a network is as it was at once.
func (b *bench) same(ctx context.Context, n network.Network, first network.State) error {
	again, err := b.Ensure(ctx, clone(n))
	if err != nil {
		return fmt.Errorf("ensure a network that is ready: %w", err)
	}
	if again != first {
		return fmt.Errorf("the state of a network that is ready changes from %+v to %+v", first, again)
	}
	return nil
}

// findsAgain checks that nothing is lost when the syncer restarts.
func findsAgain(ctx context.Context, b *bench) error {
	n := b.Network()
	first, err := b.ensure(ctx, n)
	if err != nil {
		return err
	}
	pod := podOn(n, "web")
	attached, err := b.attach(ctx, pod)
	if err != nil {
		return err
	}
	if err := b.restart(ctx); err != nil {
		return err
	}
	again, err := b.ensure(ctx, n)
	if err != nil {
		return err
	}
	if again != first {
		return fmt.Errorf("after a restart, the state changes from %+v to %+v", first, again)
	}
	later, err := b.attach(ctx, pod)
	if err != nil {
		return err
	}
	if later != attached {
		return fmt.Errorf("after a restart, what is prepared for a pod changes from %+v to %+v", attached, later)
	}
	return errors.Join(b.detach(ctx, pod), b.remove(ctx, n))
}

// keepsApart checks that a network of the same name and spec of another tenant is
// another network, or rejected.
func keepsApart(ctx context.Context, b *bench) error {
	n := b.Network()
	other := clone(n)
	other.Tenant.Key, other.Tenant.Name, other.Tenant.UID, other.UID = n.Tenant.Key+"-other", n.Tenant.Name+"-other", "other", "other"
	if _, err := b.ensure(ctx, n); err != nil {
		return err
	}
	state, err := b.ensure(ctx, other)
	if plugins.AsRejection(err) != nil {
		return errors.Join(b.remove(ctx, other), b.remove(ctx, n))
	}
	if err != nil {
		return err
	}
	one, another := podOn(n, "web"), podOn(other, "web")
	if err := b.differ(ctx, one, another); err != nil {
		return err
	}
	if err := errors.Join(b.detach(ctx, one), b.remove(ctx, n)); err != nil {
		return err
	}
	if err := b.same(ctx, other, state); err != nil {
		return fmt.Errorf("the deletion of a network changes that of another tenant: %w", err)
	}
	return errors.Join(b.detach(ctx, another), b.remove(ctx, other))
}

// differ checks that two pods have not the same of the network.
func (b *bench) differ(ctx context.Context, one, another network.Pod) error {
	first, err := b.attach(ctx, one)
	if err != nil {
		return err
	}
	second, err := b.attach(ctx, another)
	if err != nil {
		return err
	}
	if first.CNIArgs != "" && first.CNIArgs == second.CNIArgs {
		return fmt.Errorf("two pods have the same arguments for the CNI plugin: %s", first.CNIArgs)
	}
	return nil
}

// prepares checks that pods are prepared, each for itself, and released.
func prepares(ctx context.Context, b *bench) error {
	n := b.Network()
	if _, err := b.ensure(ctx, n); err != nil {
		return err
	}
	web, db := podOn(n, "web"), podOn(n, "db")
	first, err := b.attach(ctx, web)
	if err != nil {
		return err
	}
	if err := b.differ(ctx, web, db); err != nil {
		return err
	}
	again, err := b.attach(ctx, web)
	if err != nil {
		return err
	}
	if again != first {
		return fmt.Errorf("what is prepared for a pod changes from %+v to %+v", first, again)
	}
	return errors.Join(b.detach(ctx, web), b.detach(ctx, web), b.detach(ctx, db), b.remove(ctx, n))
}

// attach prepares a pod, unless pods are not prepared.
func (b *bench) attach(ctx context.Context, pod network.Pod) (network.Attachment, error) {
	if b.Passive {
		return network.Attachment{}, nil
	}
	return b.prepare(ctx, pod)
}

// detach releases a pod, unless pods are not prepared.
func (b *bench) detach(ctx context.Context, pod network.Pod) error {
	if b.Passive {
		return nil
	}
	return b.release(ctx, pod)
}

// podOn returns a pod on a network.
func podOn(n network.Network, name string) network.Pod {
	return network.Pod{
		Network: n, Namespace: "default", Name: name,
		Copy: types.NamespacedName{Namespace: n.Tenant.Key + "-default", Name: name}, UID: types.UID(n.Tenant.Key + "-" + name),
	}
}

// deletesNothing checks that what does not exist can be deleted and released.
func deletesNothing(ctx context.Context, b *bench) error {
	n := b.Network()
	return errors.Join(b.detach(ctx, podOn(n, "never")), b.remove(ctx, n))
}

// returns checks that no method outlasts its context.
func returns(ctx context.Context, b *bench) error {
	n := b.Network()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	var wrong []error
	for method, call := range map[string]func(){
		"Ensure":     func() { _, _ = b.Ensure(ended, clone(n)) },
		"PreparePod": func() { _, _ = b.PreparePod(ended, podOn(clone(n), "web")) },
		"ReleasePod": func() { _, _ = b.ReleasePod(ended, podOn(clone(n), "web")) },
		"Delete":     func() { _, _ = b.Delete(ended, clone(n)) },
	} {
		returned := make(chan struct{})
		go func() { defer close(returned); call() }()
		select {
		case <-returned:
		case <-time.After(promptly):
			wrong = append(wrong, fmt.Errorf("%s does not return when its context is done", method))
		}
	}
	return errors.Join(errors.Join(wrong...), b.detach(ctx, podOn(n, "web")), b.remove(ctx, n))
}

// validReason is the pattern of reasons of conditions.
var validReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// rejects checks that a rejection can be shown to the tenant, and stays the same.
func rejects(ctx context.Context, b *bench) error {
	if b.Invalid == nil {
		return nil
	}
	n := b.Invalid()
	first := plugins.AsRejection(b.ensured(ctx, n))
	if first == nil {
		return errors.New("an invalid network is not rejected")
	}
	if !validReason.MatchString(first.Reason) || strings.TrimSpace(first.Message) == "" || strings.Contains(first.Message, "\n") {
		return fmt.Errorf("the reason must be a word in camel case and the message one line: %q, %q", first.Reason, first.Message)
	}
	if again := plugins.AsRejection(b.ensured(ctx, n)); again == nil || *again != *first {
		return fmt.Errorf("the rejection changes from %q to %q", first.Error(), fmt.Sprint(again))
	}
	return b.remove(ctx, n)
}

// ensured returns the error of a network that does not become ready.
func (b *bench) ensured(ctx context.Context, n network.Network) error {
	_, err := b.ensure(ctx, n)
	return err
}

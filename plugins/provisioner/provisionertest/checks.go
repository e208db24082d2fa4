package provisionertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/cert"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/kubeconfig"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

const (
	// repeats is how often Ensure is called for a control plane that is ready.
	repeats = 3
	// maxMessage is how long a message in a condition may be.
	maxMessage = 1024
)

// reason is the pattern of a condition's reason.
var reason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// declares checks the capabilities.
func declares(_ context.Context, b *bench) error {
	if first, again := b.Capabilities(), b.Capabilities(); first != again {
		return fmt.Errorf("they are %+v, and then %+v", first, again)
	}
	return nil
}

// starts checks that a control plane becomes ready, and is left alone then.
func starts(ctx context.Context, b *bench) error {
	vc, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	first, err := b.start(ctx, vc)
	if err != nil {
		return err
	}
	for range repeats {
		if err := b.stays(ctx, vc, first); err != nil {
			return err
		}
	}
	return nil
}

// stays checks that a control plane is still the one that it was.
func (b *bench) stays(ctx context.Context, vc *tenancyv1alpha1.VirtualCluster, first provisioner.ControlPlane) error {
	state, err := b.ensure(ctx, vc)
	switch {
	case err != nil:
		return fmt.Errorf("Ensure of one that is ready: %w", err)
	case !state.Ready:
		return fmt.Errorf("Ensure of one that is ready: it is not any more: %s", state.Message)
	case state.Endpoint != first.Endpoint || state.Version != first.Version:
		return fmt.Errorf("Ensure of one that is ready: it was %s %s, and is %s %s",
			first.Endpoint, first.Version, state.Endpoint, state.Version)
	}
	return nil
}

// findsAgain checks that a control plane outlives the provisioner.
func findsAgain(ctx context.Context, b *bench) error {
	vc, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	first, err := b.start(ctx, vc)
	if err != nil {
		return err
	}
	if err := b.restart(ctx); err != nil {
		return err
	}
	again, err := b.start(ctx, vc)
	if err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	if again.Endpoint != first.Endpoint {
		return fmt.Errorf("after a restart: the endpoint was %s, and is %s", first.Endpoint, again.Endpoint)
	}
	return nil
}

// runsTwo checks that the end of one control plane does not concern another.
func runsTwo(ctx context.Context, b *bench) error {
	red, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	blue, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	var ofRed provisioner.ControlPlane
	go func() {
		var err error
		ofRed, err = b.start(ctx, red)
		started <- err
	}()
	ofBlue, err := b.start(ctx, blue)
	if err := errors.Join(err, <-started); err != nil {
		return err
	}
	if bytes.Equal(ofRed.Kubeconfig, ofBlue.Kubeconfig) {
		return errors.New("two VirtualClusters have the same kubeconfig")
	}
	if err := b.delete(ctx, red); err != nil {
		return err
	}
	if err := b.stays(ctx, blue, ofBlue); err != nil {
		return fmt.Errorf("after the deletion of another control plane: %w", err)
	}
	return nil
}

// deletes checks that Delete can be called at any time.
func deletes(ctx context.Context, b *bench) error {
	never, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	if err := b.delete(ctx, never); err != nil {
		return fmt.Errorf("one that was never made: %w", err)
	}
	starting, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	if _, err := b.ensure(ctx, starting); err != nil {
		return err
	}
	if err := b.delete(ctx, starting); err != nil {
		return fmt.Errorf("one that was about to start: %w", err)
	}
	vc, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	if _, err := b.start(ctx, vc); err != nil {
		return err
	}
	if err := b.delete(ctx, vc); err != nil {
		return err
	}
	switch gone, err := b.remove(ctx, vc); {
	case err != nil:
		return fmt.Errorf("one that is gone: Delete: %w", err)
	case !gone:
		return errors.New("one that is gone: Delete reports that something is left")
	default:
		return nil
	}
}

// returns checks that no method outlives its context, whatever it returns.
func returns(ctx context.Context, b *bench) error {
	vc, err := b.virtualCluster(ctx)
	if err != nil {
		return err
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	return errors.Join(
		unchanged("Ensure", vc, func() { _, _ = b.Ensure(done, vc) }),
		unchanged("Delete", vc, func() { _, _ = b.Delete(done, vc) }),
	)
}

// fails checks the Failure of a control plane that cannot be started.
func fails(ctx context.Context, b *bench) error {
	if b.Invalid == nil {
		return nil
	}
	vc, err := b.Invalid(ctx)
	if err != nil {
		return fmt.Errorf("call Invalid: %w", err)
	}
	b.given = append(b.given, vc)
	var state provisioner.ControlPlane
	err = b.until(ctx, func() (bool, error) {
		state, err = b.ensure(ctx, vc)
		return state.Ready, err
	})
	failure := provisioner.AsFailure(err)
	switch {
	case err == nil:
		return errors.New("it becomes ready")
	case failure == nil:
		return fmt.Errorf("it returns no Failure: %w", err)
	case !reason.MatchString(failure.Reason):
		return fmt.Errorf("the reason %q is not a word in camel case", failure.Reason)
	case failure.Message == "" || len(failure.Message) > maxMessage || strings.Contains(failure.Message, "\n"):
		return fmt.Errorf("the message %q is not one line of at most %d bytes", failure.Message, maxMessage)
	}
	_, err = b.ensure(ctx, vc)
	again := provisioner.AsFailure(err)
	if again == nil {
		again = &provisioner.Failure{}
	}
	if *again != *failure {
		return fmt.Errorf("it fails with %q, and then with %q: conditions would change without end", failure.Message, again.Message)
	}
	return nil
}

// validate checks what a provisioner says of a control plane that is ready.
func validate(state provisioner.ControlPlane) error {
	wrong := []error{validateURL("Endpoint", state.Endpoint), validateKubeconfig("Kubeconfig", state.Kubeconfig)}
	if state.PodEndpoint != "" {
		wrong = append(wrong, validateURL("PodEndpoint", state.PodEndpoint))
	}
	if len(state.PlatformKubeconfig) > 0 {
		wrong = append(wrong, validateKubeconfig("PlatformKubeconfig", state.PlatformKubeconfig))
	}
	if _, err := version.ParseGeneric(state.Version); err != nil {
		wrong = append(wrong, fmt.Errorf("the Version of the control plane: %w", err))
	}
	if len(state.KubeletClientCA) > 0 {
		if _, err := cert.ParseCertsPEM(state.KubeletClientCA); err != nil {
			wrong = append(wrong, fmt.Errorf("the KubeletClientCA of the control plane: %w", err))
		}
	}
	return errors.Join(wrong...)
}

func validateURL(field, text string) error {
	if parsed, err := url.Parse(text); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		return fmt.Errorf("the %s of the control plane is %q: it must be a URL with https", field, text)
	}
	return nil
}

// validateKubeconfig checks that a kubeconfig embeds all that it needs.
func validateKubeconfig(field string, data []byte) error {
	if _, err := kubeconfig.RESTConfig(data); err != nil {
		return fmt.Errorf("the %s of the control plane: %w", field, err)
	}
	return nil
}

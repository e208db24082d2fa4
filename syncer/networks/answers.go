package networks

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	networkv1 "github.com/virtualcluster/virtualcluster/apis/network/v1"
	"github.com/virtualcluster/virtualcluster/plugins"
	"github.com/virtualcluster/virtualcluster/plugins/network"
)

// maxAnswer is the maximum length of a provider's message in a status.
const maxAnswer = 1024

// maxArgs is the maximum length of arguments for a CNI plugin.
const maxArgs = 16 << 10

// validReason is the pattern of a provider's reasons.
var validReason = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// errAddress is the answer of a provider with a bad address.
var errAddress = errors.New("its address of the DNS service cannot be one")

// checked returns the state of a network as it can be used: the address of the
// DNS service in canonical form, and only if the provider allocates addresses.
func checked(n network.Network, state network.State) (network.State, error) {
	if !n.Spec.HasExternalAddresses() {
		state.DNSServiceIP = ""
	}
	if state.DNSServiceIP == "" {
		return state, nil
	}
	address, err := netip.ParseAddr(state.DNSServiceIP)
	if err != nil || address.Zone() != "" || address.IsUnspecified() || address.IsLoopback() || address.IsMulticast() ||
		address.IsLinkLocalUnicast() {
		return network.State{}, fmt.Errorf("%w: %.64q", errAddress, state.DNSServiceIP)
	}
	state.DNSServiceIP = address.Unmap().String()
	return state, nil
}

// errArgs is the answer of a provider with bad arguments for a CNI plugin.
var errArgs = errors.New("its arguments for the CNI plugin are too long or no text")

// checkArgs checks arguments for a CNI plugin, which become an annotation.
func checkArgs(args string) error {
	if len(args) > maxArgs || !utf8.ValidString(args) {
		return errArgs
	}
	return nil
}

// told returns a provider's message as a tenant may read it: on one line, and not
// too long.
func told(message string) string {
	message = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, message)
	if len(message) > maxAnswer {
		message = strings.ToValidUTF8(message[:maxAnswer], "")
	}
	return strings.TrimSpace(message)
}

// reasonOf returns the reason of a rejection for a condition.
func reasonOf(r *plugins.RejectionError) string {
	switch {
	case r.Reason == "":
		return plugins.ReasonQuotaExceeded
	case !validReason.MatchString(r.Reason):
		return networkv1.ReasonProviderFailed
	}
	return r.Reason
}

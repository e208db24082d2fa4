package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/util/version"
)

const (
	stateFile = "vc-standalone.json"
	// layout is how the directory is laid out. It grows when an older program
	// could not use what a newer one wrote.
	layout = 1
)

// State is what the directory remembers of its last use.
type State struct {
	// Layout is the layout of the directory.
	Layout int `json:"layout"`
	// Kubernetes is the version of Kubernetes that wrote the data.
	Kubernetes string `json:"kubernetes"`
	// Port is where the apiservers were served.
	Port int `json:"port,omitempty"`
	// GatewayPort is where the gateway served.
	GatewayPort int `json:"gatewayPort,omitempty"`
}

// Port is the port that was used last, zero at the first time.
func (d *Dir) Port() int { return d.state.Port }

// RememberPort keeps the port for the next time.
func (d *Dir) RememberPort(port int) error {
	if d.state.Port == port {
		return nil
	}
	d.state.Port = port
	return d.save()
}

// GatewayPort is the port of the gateway that was used last, zero at the first
// time.
func (d *Dir) GatewayPort() int { return d.state.GatewayPort }

// RememberGatewayPort keeps the port of the gateway for the next time.
func (d *Dir) RememberGatewayPort(port int) error {
	if d.state.GatewayPort == port {
		return nil
	}
	d.state.GatewayPort = port
	return d.save()
}

// load reads the state, and makes it ours if what is there can be used.
func (d *Dir) load(kubernetes string) error {
	data, err := os.ReadFile(d.File(stateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("data directory %s cannot be used: %w", d.path, err)
	default:
		if err := json.Unmarshal(data, &d.state); err != nil {
			return fmt.Errorf("%s is damaged (%w): restore it, or choose another --data-dir", d.File(stateFile), err)
		}
		if err := d.state.usableBy(kubernetes); err != nil {
			return fmt.Errorf("%s was written by a newer vc-standalone (%w): use that one, or another --data-dir", d.path, err)
		}
	}
	d.state.Layout, d.state.Kubernetes = layout, kubernetes
	return d.save()
}

func (d *Dir) save() error {
	data, err := json.Marshal(d.state)
	if err != nil {
		return fmt.Errorf("write %s: %w", d.File(stateFile), err)
	}
	return d.WriteFile(stateFile, append(data, '\n'))
}

// usableBy returns an error if this program is too old for the state.
// Kubernetes reads the state of its own minor version and of the one before,
// but of no later one.
func (s State) usableBy(kubernetes string) error {
	if s.Layout > layout {
		return fmt.Errorf("layout %d, this one knows %d", s.Layout, layout)
	}
	theirs, err := version.ParseGeneric(s.Kubernetes)
	if err != nil {
		return nil //nolint:nilerr // a build without a version of its own is taken to fit
	}
	ours, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if theirs.Major() > ours.Major() || theirs.Major() == ours.Major() && theirs.Minor() > ours.Minor() {
		return fmt.Errorf("with Kubernetes %s, this one has %s", s.Kubernetes, kubernetes)
	}
	return nil
}

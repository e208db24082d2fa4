package provisioner

import (
	"slices"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
)

// extraSANsOf returns the extra names of a control plane.
func (h *Hosted) extraSANsOf(vc *tenancyv1alpha1.VirtualCluster) []string {
	if !h.options.ExtraSANs || vc.Spec.ControlPlane == nil {
		return nil
	}
	return vc.Spec.ControlPlane.ExtraSANs
}

// unsupportedSANs reports extra names that the control plane does not have; nil if
// there are none.
func (h *Hosted) unsupportedSANs(vc *tenancyv1alpha1.VirtualCluster) *provisioner.ExtraSANs {
	if h.options.ExtraSANs || vc.Spec.ControlPlane == nil || len(vc.Spec.ControlPlane.ExtraSANs) == 0 {
		return nil
	}
	return &provisioner.ExtraSANs{
		Rejected: tenancyv1alpha1.ReasonExtraSANsUnsupported,
		Message:  "spec.controlPlane.extraSANs has no effect: only vc-host gives control planes extra names",
	}
}

// rename replaces the extra names of a control plane if they have changed.
func (p *plane) rename(sans []string) error {
	if slices.Equal(p.extraSANs, sans) {
		return nil
	}
	if err := p.SetExtraSANs(sans); err != nil {
		return err
	}
	p.extraSANs = sans
	return nil
}

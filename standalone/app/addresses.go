package app

import (
	"context"
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// servicePool are the Service addresses of which tenants get parts: half a million, 4096 for each of 128 tenants.
	servicePool = "10.104.0.0/13"
	// serviceCIDRName names them in the super cluster.
	serviceCIDRName = "virtualcluster-tenants"
)

// serveTenantAddresses has the super cluster serve the tenants' Service addresses beside its own.
func serveTenantAddresses(ctx context.Context, super *rest.Config) error {
	client, err := kubernetes.NewForConfig(super)
	if err != nil {
		return fmt.Errorf("make a client for Service addresses: %w", err)
	}
	cidrs := client.NetworkingV1().ServiceCIDRs()
	want := networkingv1ac.ServiceCIDR(serviceCIDRName).WithSpec(networkingv1ac.ServiceCIDRSpec().WithCIDRs(servicePool))
	if _, err := cidrs.Apply(ctx, want, metav1.ApplyOptions{FieldManager: name, Force: true}); err != nil {
		return fmt.Errorf("add the Service addresses %s: %w", servicePool, err)
	}
	return wait.PollUntilContextCancel(ctx, establishedPoll, true, func(ctx context.Context) (bool, error) {
		current, err := cidrs.Get(ctx, serviceCIDRName, metav1.GetOptions{})
		return err == nil && isServed(current), err
	})
}

func isServed(cidr *networkingv1.ServiceCIDR) bool {
	return slices.Equal(cidr.Spec.CIDRs, []string{servicePool}) &&
		meta.IsStatusConditionTrue(cidr.Status.Conditions, networkingv1.ServiceCIDRConditionReady)
}

package converted_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiversion "k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/controllers/provisioner/converted"
	"github.com/virtualcluster/virtualcluster/controllers/virtualcluster"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/pki"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner"
	"github.com/virtualcluster/virtualcluster/plugins/provisioner/provisionertest"
)

// super answers what the version of the super cluster is.
type super struct{}

func (super) ServerVersion() (*apiversion.Info, error) {
	return &apiversion.Info{GitVersion: "v1.36.3"}, nil
}

// TestContract: Converted does what vc-manager relies on.
func TestContract(t *testing.T) {
	authority, err := pki.NewAuthority("gateway", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	caFile := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, authority.CertPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	fenced := func(context.Context, string) (metadata.Interface, error) {
		return metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), nil
	}
	gateway := virtualcluster.Gateway{URL: "https://gw.example.com", CAFile: caFile}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster, serial := fake.NewClientBuilder().WithScheme(scheme).Build(), 0
	newVirtualCluster := func(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
		serial++
		name := fmt.Sprintf("t%d", serial)
		vc := &tenancyv1alpha1.VirtualCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "tenants", Name: name, UID: types.UID(name)}}
		vc.Status.ClusterNamespace = "tenants-123456-" + name
		return vc, cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: vc.Status.ClusterNamespace, UID: types.UID("root-" + name), Annotations: names.OwnerAnnotations(vc),
		}})
	}
	provisionertest.Run(t, provisionertest.Case{
		New: func(context.Context) (provisioner.Provisioner, error) {
			return converted.New(cluster, cluster, super{}, gateway, fenced, cluster.RESTMapper()), nil
		},
		VirtualCluster: newVirtualCluster,
		Invalid: func(ctx context.Context) (*tenancyv1alpha1.VirtualCluster, error) {
			vc, err := newVirtualCluster(ctx)
			if err != nil {
				return nil, err
			}
			return vc, cluster.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
				Namespace: vc.Status.ClusterNamespace, Name: "converted", Annotations: map[string]string{names.VCUID: "another"},
			}})
		},
	})
}

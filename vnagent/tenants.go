package vnagent

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// bySubject is the index of the published authorities, by the names that their
// certificates sign under.
const bySubject = "subject"

// errUnknown is a certificate that no published authority has signed.
// errAmbiguous is one of an authority that several tenants have.
var (
	errUnknown   = errors.New("it is signed by no kubelet client CA of a tenant")
	errAmbiguous = errors.New("its CA is published for several tenants: give each tenant's apiserver one of its own")
)

// tenant is who a request is for.
type tenant struct {
	// key is the cluster key, namespace and name the VirtualCluster's.
	key, namespace, name string
	uid                  types.UID
}

// tenants knows tenants' apiservers by the authority that has signed their
// certificate, and by nothing else: the name in a certificate is chosen by its
// requester.
type tenants struct {
	// cache holds the VirtualClusters and the published authorities, with the
	// index.
	cache client.Reader
}

// indexAuthorities makes the index of the published authorities.
func indexAuthorities(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.ConfigMap{}, bySubject, subjectsOf)
}

// subjectsOf are the names that the authorities in a ConfigMap sign under.
func subjectsOf(obj client.Object) []string {
	authorities := authoritiesIn(obj)
	subjects := make([]string, 0, len(authorities))
	for _, authority := range authorities {
		subjects = append(subjects, subjectKey(authority.RawSubject))
	}
	return subjects
}

func subjectKey(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

// authoritiesIn reads the authorities that are published in a ConfigMap. Other
// data is left out.
func authoritiesIn(obj client.Object) []*x509.Certificate {
	published, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	certificates, err := cert.ParseCertsPEM([]byte(published.Data[names.KubeletClientCAKey]))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(certificates, func(c *x509.Certificate) bool { return !c.BasicConstraintsValid || !c.IsCA })
}

// identify returns the tenant whose apiserver presents the certificate. It is
// called at each request, so that a revoked authority and an expired
// certificate are of no use on an open connection.
func (t tenants) identify(ctx context.Context, certificate *x509.Certificate, now time.Time) (tenant, error) {
	if certificate.IsCA {
		return tenant{}, errUnknown // an authority signs, and is not a client
	}
	published := &corev1.ConfigMapList{}
	if err := t.cache.List(ctx, published, client.MatchingFields{bySubject: subjectKey(certificate.RawIssuer)}); err != nil {
		return tenant{}, fmt.Errorf("list the kubelet client CAs: %w", err)
	}
	found, reason := tenant{}, errUnknown
	for i := range published.Items {
		if err := verify(certificate, authoritiesIn(&published.Items[i]), now); err != nil {
			if expired(err) {
				reason = err
			}
			continue
		}
		owner, err := t.ownerOf(ctx, &published.Items[i])
		switch {
		case err != nil:
			return tenant{}, err
		case owner.uid == "":
			continue
		case found.uid != "" && found.uid != owner.uid:
			return tenant{}, errAmbiguous
		}
		found = owner
	}
	if found.uid == "" {
		return tenant{}, reason
	}
	return found, nil
}

// verify checks that one of the authorities itself has signed the certificate,
// for a client, and that it is valid now.
func verify(certificate *x509.Certificate, authorities []*x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	for _, authority := range authorities {
		roots.AddCert(authority)
	}
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

func expired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

// ownerOf says which tenant an authority is published for; none if it is not
// where vc-manager puts it.
func (t tenants) ownerOf(ctx context.Context, published *corev1.ConfigMap) (tenant, error) {
	vc := &tenancyv1alpha1.VirtualCluster{}
	key := client.ObjectKey{Namespace: published.Labels[names.VCNamespace], Name: published.Labels[names.VCName]}
	if err := t.cache.Get(ctx, key, vc); err != nil {
		return tenant{}, client.IgnoreNotFound(err)
	}
	if published.Namespace != vc.Status.ClusterNamespace || published.Annotations[names.VCUID] != string(vc.UID) {
		return tenant{}, nil
	}
	return tenant{key: vc.Status.ClusterNamespace, namespace: vc.Namespace, name: vc.Name, uid: vc.UID}, nil
}

package access

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Account is the service account in the namespace kube-system of a tenant whose
// tokens kubectl vc issues. It is cluster-admin of the tenant, as the permanent
// kubeconfig is. Deleting it invalidates all its tokens.
const Account = "kubectl-vc"

// MinLifetime is the shortest lifetime of a token that apiservers issue.
const MinLifetime = 10 * time.Minute

// Token is a credential of a tenant that expires.
type Token struct {
	// Token is the bearer token.
	Token string
	// Expires is when the apiserver stops accepting it. It may be earlier than
	// requested.
	Expires time.Time
}

// IssueToken issues a token with all permissions in a tenant. The client is
// that of the tenant's admin.
func IssueToken(ctx context.Context, tenant client.Client, lifetime time.Duration) (Token, error) {
	if err := ensureAccount(ctx, tenant); err != nil {
		return Token{}, err
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))},
	}
	if err := tenant.SubResource("token").Create(ctx, account(), request); err != nil {
		return Token{}, fmt.Errorf("create token of service account %s/%s in the tenant: %w", metav1.NamespaceSystem, Account, err)
	}
	return Token{Token: request.Status.Token, Expires: request.Status.ExpirationTimestamp.Time}, nil
}

// ensureAccount creates the service account and its permissions.
func ensureAccount(ctx context.Context, tenant client.Client) error {
	for _, obj := range []client.Object{account(), binding()} {
		if err := tenant.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s in the tenant: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

func account() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: Account}}
}

func binding() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: Account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: Account}},
	}
}

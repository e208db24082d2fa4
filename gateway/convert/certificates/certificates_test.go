package certificates_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/util/cert"

	"github.com/virtualcluster/virtualcluster/gateway/convert/certificates"
)

// requestOf returns a request that nothing is wrong with.
func requestOf(t *testing.T) *certificates.Request {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	data, err := cert.MakeCSR(key, &pkix.Name{CommonName: "anna"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &certificates.Request{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: data, SignerName: "example.com/signer", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}}
}

// fieldsOf returns what is wrong, as fields and types of errors.
func fieldsOf(wrong field.ErrorList) []string {
	fields := make([]string, 0, len(wrong))
	for _, err := range wrong {
		fields = append(fields, string(err.Type)+" "+err.Field)
	}
	return fields
}

func expect(t *testing.T, name string, wrong field.ErrorList, want ...string) {
	t.Helper()
	if got := fieldsOf(wrong); !slices.Equal(got, want) {
		t.Errorf("%s: wrong are %q, want %q", name, got, want)
	}
}

func TestCreate(t *testing.T) {
	who := &user.DefaultInfo{Name: "anna", Groups: []string{"team"}, Extra: map[string][]string{"a.example.com/b": {"c"}}}
	for name, tt := range map[string]struct {
		change func(*certificates.Request)
		want   []string
	}{
		"of another user": {change: func(r *certificates.Request) {
			r.Spec.Username, r.Spec.UID, r.Spec.Groups = "admin", "1", []string{user.SystemPrivilegedGroup}
		}},
		"approved and signed": {change: func(r *certificates.Request) {
			r.Status.Certificate = []byte("x")
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved}}
		}},
		"no request": {func(r *certificates.Request) { r.Spec.Request = []byte("x") }, []string{"FieldValueInvalid spec.request"}},
		"another's key": {func(r *certificates.Request) {
			block, _ := pem.Decode(r.Spec.Request)
			block.Bytes[len(block.Bytes)-1] ^= 1
			r.Spec.Request = pem.EncodeToMemory(block)
		}, []string{"FieldValueInvalid spec.request"}},
		"no usages":     {func(r *certificates.Request) { r.Spec.Usages = nil }, []string{"FieldValueRequired spec.usages"}},
		"wrong usage":   {func(r *certificates.Request) { r.Spec.Usages[0] = "a" }, []string{"FieldValueNotSupported spec.usages[0]"}},
		"usage twice":   {func(r *certificates.Request) { r.Spec.Usages = append(r.Spec.Usages, r.Spec.Usages...) }, []string{"FieldValueDuplicate spec.usages[1]"}},
		"no domain":     {func(r *certificates.Request) { r.Spec.SignerName = "signer" }, []string{"FieldValueInvalid spec.signerName"}},
		"no dot":        {func(r *certificates.Request) { r.Spec.SignerName = "a/b" }, []string{"FieldValueInvalid spec.signerName"}},
		"short":         {func(r *certificates.Request) { r.Spec.ExpirationSeconds = new(int32(599)) }, []string{"FieldValueInvalid spec.expirationSeconds"}},
		"of Kubernetes": {change: func(r *certificates.Request) { r.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName }},
	} {
		request := requestOf(t)
		tt.change(request)
		expect(t, name, certificates.Create(who, request), tt.want...)
		spec := request.Spec
		if spec.Username != "anna" || spec.UID != "" || !slices.Equal(spec.Groups, who.Groups) || len(spec.Extra) != 1 {
			t.Errorf("%s: the user is %q, %q, %q, %q", name, spec.Username, spec.UID, spec.Groups, spec.Extra)
		}
		if len(request.Status.Certificate)+len(request.Status.Conditions) > 0 {
			t.Errorf("%s: the status is %v", name, request.Status)
		}
	}
}

// conditionsOf returns conditions of types, which are true.
func conditionsOf(types ...certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
	var conditions []certificatesv1.CertificateSigningRequestCondition
	for _, each := range types {
		conditions = append(conditions, certificatesv1.CertificateSigningRequestCondition{Type: each, Status: corev1.ConditionTrue})
	}
	return conditions
}

func TestChange(t *testing.T) {
	const approved, denied, failed = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed
	data, _, err := cert.GenerateSelfSignedCertKey("anna", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		subresource   string
		before, after []certificatesv1.RequestConditionType
		certificate   []byte
		want          []string
		kept          []certificatesv1.RequestConditionType
		signed        bool
	}{
		"an update changes no status": {"", nil, []certificatesv1.RequestConditionType{approved}, data, nil, nil, false},
		"an approval": {
			certificates.Approval, nil, []certificatesv1.RequestConditionType{approved}, data, nil,
			[]certificatesv1.RequestConditionType{approved}, false,
		},
		"an approval of what is denied": {
			certificates.Approval, []certificatesv1.RequestConditionType{denied}, []certificatesv1.RequestConditionType{denied, approved}, nil,
			[]string{"FieldValueInvalid status.conditions"}, []certificatesv1.RequestConditionType{denied, approved}, false,
		},
		"a denial is taken back": {
			certificates.Approval, []certificatesv1.RequestConditionType{denied}, nil, nil,
			[]string{"FieldValueForbidden status.conditions"}, nil, false,
		},
		"a condition twice": {
			certificates.Approval, nil, []certificatesv1.RequestConditionType{"A", "A"}, nil,
			[]string{"FieldValueDuplicate status.conditions[1].type"}, []certificatesv1.RequestConditionType{"A", "A"}, false,
		},
		"a signature": {
			certificates.Status, []certificatesv1.RequestConditionType{approved}, []certificatesv1.RequestConditionType{approved, failed}, data, nil,
			[]certificatesv1.RequestConditionType{approved, failed}, true,
		},
		"a signer approves": {
			certificates.Status, nil, []certificatesv1.RequestConditionType{approved}, data,
			[]string{"FieldValueForbidden status.conditions"}, []certificatesv1.RequestConditionType{approved}, true,
		},
		"no certificate": {
			certificates.Status, nil, nil, []byte("x"), []string{"FieldValueInvalid status.certificate"}, nil, true,
		},
	} {
		before := requestOf(t)
		before.Status.Conditions = conditionsOf(tt.before...)
		after := before.DeepCopy()
		after.Spec.Username, after.Status.Conditions, after.Status.Certificate = "admin", conditionsOf(tt.after...), tt.certificate
		expect(t, name, certificates.Change(tt.subresource, before, after, time.Now()), tt.want...)
		var kept []certificatesv1.RequestConditionType
		for _, condition := range after.Status.Conditions {
			kept = append(kept, condition.Type)
		}
		if !slices.Equal(kept, tt.kept) || (len(after.Status.Certificate) > 0) != tt.signed || after.Spec.Username != "" {
			t.Errorf("%s: the conditions are %q, the certificate has %d bytes, the user is %q",
				name, kept, len(after.Status.Certificate), after.Spec.Username)
		}
	}
}

// TestSignedTwice: a certificate stays as it is.
func TestSignedTwice(t *testing.T) {
	first, _, errOfFirst := cert.GenerateSelfSignedCertKey("anna", nil, nil)
	second, _, errOfSecond := cert.GenerateSelfSignedCertKey("bob", nil, nil)
	if errOfFirst != nil || errOfSecond != nil {
		t.Fatal(errOfFirst, errOfSecond)
	}
	before := requestOf(t)
	before.Status.Certificate = first
	after := before.DeepCopy()
	after.Status.Certificate = second
	expect(t, "signed twice", certificates.Change(certificates.Status, before, after, time.Now()), "FieldValueForbidden status.certificate")
}

// TestTimes: conditions have times, and keep that of their transition.
func TestTimes(t *testing.T) {
	now := time.Now()
	before := requestOf(t)
	before.Status.Conditions = conditionsOf("A", "B")
	after := before.DeepCopy()
	expect(t, "first", certificates.Change(certificates.Approval, before, after, now))
	later := after.DeepCopy()
	for i := range later.Status.Conditions {
		later.Status.Conditions[i] = conditionsOf("A", "B")[i]
	}
	later.Status.Conditions[1].Status = corev1.ConditionFalse
	expect(t, "second", certificates.Change(certificates.Approval, after, later, now.Add(time.Hour)))
	for i, want := range []time.Time{now, now.Add(time.Hour)} {
		condition := later.Status.Conditions[i]
		if !condition.LastTransitionTime.Time.Equal(want) || !condition.LastUpdateTime.Time.Equal(now.Add(time.Hour)) {
			t.Errorf("%s has changed at %s, and was updated at %s", condition.Type, condition.LastTransitionTime, condition.LastUpdateTime)
		}
	}
}

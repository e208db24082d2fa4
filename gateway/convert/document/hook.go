package document

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClientConfig is how a conversion webhook is called.
type ClientConfig = apiextensionsv1.WebhookClientConfig

// Hook is where the super cluster calls the gateway instead of the conversion
// webhook of a CRD.
type Hook struct {
	// URL is that of the gateway for the CRD, with a secret.
	URL string
	// CA verifies the gateway, in PEM; empty for the CAs of the super cluster.
	CA []byte
}

// bundleType is the type of the PEM block with the tenant's CA bundle: no reader of
// certificates takes it for one.
const bundleType = "CONVERTED TENANT CA BUNDLE"

// MaxTarget is how long what a webhook's URL or Service adds to the URL of the
// gateway may be, in bytes.
const MaxTarget = 64 << 10

// Of returns the configuration in the super cluster of a tenant's one, which leads
// to the gateway. It keeps the tenant's in it, field by field: the URL or the
// Service in the URL, and the CA bundle in that, so that each has the manager that
// it has in a cluster. One without URL and Service gets no URL.
func (h Hook) Of(tenant ClientConfig) (ClientConfig, error) {
	var super ClientConfig
	bundle := tenant.CABundle
	if len(h.CA) > 0 {
		super.CABundle, tenant.CABundle = withBundle(h.CA, bundle), nil
	}
	if tenant.URL == nil && tenant.Service == nil {
		return super, nil
	}
	target, err := json.Marshal(tenant)
	if err != nil {
		return super, fmt.Errorf("write the configuration of a webhook: %w", err)
	}
	if len(target) > MaxTarget {
		return super, fmt.Errorf("the webhook's URL, or its Service, takes more than %d bytes", MaxTarget)
	}
	super.URL = new(h.URL + "/" + base64.RawURLEncoding.EncodeToString(target))
	return super, nil
}

func withBundle(ca, bundle []byte) []byte {
	all := append(bytes.TrimSpace(bytes.Clone(ca)), '\n')
	if len(bundle) == 0 {
		return all
	}
	return append(all, pem.EncodeToMemory(&pem.Block{Type: bundleType, Bytes: bundle})...)
}

// Unhook undoes Hook.Of. What does not lead to the gateway is empty for the tenant.
func Unhook(super ClientConfig) ClientConfig {
	var tenant ClientConfig
	if super.URL != nil {
		encoded := (*super.URL)[strings.LastIndexByte(*super.URL, '/')+1:]
		if target, err := base64.RawURLEncoding.DecodeString(encoded); err != nil || json.Unmarshal(target, &tenant) != nil {
			tenant = ClientConfig{}
		}
	}
	for block, rest := pem.Decode(super.CABundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == bundleType {
			tenant.CABundle = block.Bytes
		}
	}
	return tenant
}

// Hooked is a configuration that leads to the gateway, in a document that is to be
// converted: nothing else is sent to the super cluster.
type Hooked struct{ ClientConfig }

// errUnhooked is a configuration that would make the super cluster call the tenant's
// webhook.
var errUnhooked = errors.New("the configuration of a conversion webhook cannot be changed in this way: update or patch the CRD")

func hooked(value any) (any, error) {
	config, ok := value.(Hooked)
	if !ok {
		return nil, errUnhooked
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(&config.ClientConfig)
}

func unhooked(value any) any {
	super, ok := value.(Object)
	if !ok {
		return value
	}
	var config ClientConfig
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(super, &config); err != nil {
		return Object{}
	}
	tenant := Unhook(config)
	converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&tenant)
	if err != nil {
		return Object{}
	}
	return converted
}

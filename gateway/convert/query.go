package convert

import (
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// Parameters of the query that the super cluster gets, in addition to the
// selectors and the token to continue a list. Others are ignored, as unknown
// ones are in a cluster.
var (
	objectParameters = []string{
		resourceVersion, "resourceVersionMatch", "timeoutSeconds", "limit", verbWatch, "allowWatchBookmarks", "sendInitialEvents",
		"includeObject", "dryRun", "fieldManager", "fieldValidation", "force",
		"gracePeriodSeconds", "orphanDependents", "propagationPolicy",
	}
	streamParameters = []string{
		"container", "follow", "previous", "sinceSeconds", "sinceTime", "timestamps", "tailLines", "limitBytes", "stream",
		"command", "stdin", "stdout", "stderr", "tty", "ports",
	}
)

const (
	labelSelector = "labelSelector"
	fieldSelector = "fieldSelector"
	continueToken = "continue"
	// resourceVersion is also a field of metadata.
	resourceVersion = "resourceVersion"
)

// only returns the parameters of a query that are in a list.
func only(query url.Values, parameters []string) url.Values {
	kept := url.Values{}
	for _, parameter := range parameters {
		if values, ok := query[parameter]; ok {
			kept[parameter] = values
		}
	}
	return kept
}

// query converts the query of a request for objects.
func (c *call) query(asked url.Values) (url.Values, error) {
	query := only(asked, objectParameters)
	if !c.isMany() && c.info.Verb != verbDeleteCollection {
		return query, nil
	}
	selected, err := c.labels(asked.Get(labelSelector))
	if err != nil {
		return nil, badRequest(err)
	}
	set(query, labelSelector, selected)
	if selected, err = c.fieldSelector(asked.Get(fieldSelector)); err != nil {
		return nil, badRequest(err)
	}
	set(query, fieldSelector, selected)
	if token := asked.Get(continueToken); token != "" {
		opened, err := c.Tokens.open(token, c.list(query))
		if err != nil {
			return nil, errExpired
		}
		query.Set(continueToken, opened)
	}
	return query, nil
}

func set(query url.Values, parameter, value string) {
	if value != "" {
		query.Set(parameter, value)
	}
}

func badRequest(err error) error { return apierrors.NewBadRequest(err.Error()) }

// list identifies the list that a token continues.
func (c *call) list(query url.Values) string {
	return strings.Join([]string{
		c.Tenant, c.info.APIGroup, c.info.APIVersion, c.info.Resource, c.namespace,
		query.Get(labelSelector), query.Get(fieldSelector),
	}, "\x00")
}

// labels converts a label selector. It selects no objects of the platform and,
// across namespaces, only objects with the tenant's label.
func (c *call) labels(text string) (string, error) {
	asked, err := labels.Parse(text)
	if err != nil {
		return "", err
	}
	if c.kind.IsNode() {
		return nodeSelector(asked).String(), nil
	}
	requirements, _ := asked.Requirements()
	converted := labels.NewSelector()
	for _, requirement := range requirements {
		super, err := c.requirement(requirement)
		if err != nil {
			return "", err
		}
		converted = converted.Add(*super)
	}
	if c.kind.Reserves {
		platform, err := labels.NewRequirement(names.VCName, selection.DoesNotExist, nil)
		if err != nil {
			return "", err
		}
		converted = converted.Add(*platform)
	}
	if c.isAcross() {
		own, err := labels.NewRequirement(names.Converted, selection.Equals, []string{c.Tenant})
		if err != nil {
			return "", err
		}
		converted = converted.Add(*own)
	}
	return converted.String(), nil
}

// requirement converts a requirement of a label selector.
func (c *call) requirement(asked labels.Requirement) (*labels.Requirement, error) {
	key := document.LabelKey(asked.Key(), c.kind.IsNamespace())
	if key == "" {
		return nil, fmt.Errorf("%s %s: labels of %s are the platform's", labelSelector, asked.Key(), names.Domain)
	}
	values := asked.Values().List()
	for i, value := range values {
		if !c.kind.IsNamespace() || key != corev1.LabelMetadataName {
			break
		}
		super, err := c.namer.Namespace(value)
		if err != nil {
			return nil, err
		}
		values[i] = super
	}
	return labels.NewRequirement(key, asked.Operator(), values)
}

// namespaceFields are the fields of selectors that hold the name of a namespace.
var namespaceFields = map[string]bool{
	"metadata.namespace": true, "involvedObject.namespace": true, "regarding.namespace": true,
}

// fieldSelector converts a field selector. In a namespace that does not exist, it
// selects nothing.
func (c *call) fieldSelector(text string) (string, error) {
	asked, err := fields.ParseSelector(text)
	if err != nil {
		return "", err
	}
	converted, err := asked.Transform(func(field, value string) (string, string, error) {
		switch {
		case value == "":
			return field, value, nil
		case namespaceFields[field]:
			value, err = c.namer.Namespace(value)
		case field == "metadata.name":
			value, err = c.storedAs(value)
		}
		return field, value, err
	})
	if err != nil {
		return "", err
	}
	if c.isAcross() && c.namespace != "" {
		converted = fields.AndSelectors(converted, fields.OneTermEqualSelector("metadata.namespace", c.namespace))
	}
	return converted.String(), nil
}

package convert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/virtualcluster/virtualcluster/gateway/convert/document"
	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/internal/virtualnode"
)

// serveNodes serves a read of nodes: those that the tenant sees, as other tenants
// see them.
func (c *call) serveNodes(w http.ResponseWriter, r *http.Request) error {
	query, err := c.query(r.URL.Query())
	if err != nil {
		return err
	}
	shown := &shownNodes{call: c, ctx: r.Context(), include: metav1.IncludeObjectPolicy(query.Get("includeObject"))}
	if shown.include == metav1.IncludeNone {
		query.Del("includeObject") // the labels decide which rows are shown
	}
	response, err := c.forward(r, query, outgoing{method: r.Method, accept: accept(r.Header.Values("Accept"))})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	converter := c.converter(query)
	converter.Finish = shown.finish
	if c.info.Verb == verbWatch && response.StatusCode == http.StatusOK {
		watchEvents(w, response, converter)
		return nil
	}
	err = c.answer(w, r, response, converter)
	if errors.Is(err, errHidden) {
		return apierrors.NewNotFound(c.kind.GroupResource(), c.name)
	}
	return err
}

// shownNodes decides which nodes the response to a request shows.
type shownNodes struct {
	*call

	ctx     context.Context //nolint:containedctx // of the one request
	include metav1.IncludeObjectPolicy

	// running are the nodes with pods of the tenant, when they were read last.
	running sets.Set[string]
	read    time.Time
}

// runningLifetime is how long a watch knows which nodes run pods of the tenant.
const runningLifetime = 10 * time.Second

// finish masks the nodes of a document. Those that the tenant does not see are
// removed from lists and Tables, and are errHidden elsewhere.
func (n *shownNodes) finish(object document.Object) error {
	if n.info.Verb == verbList && object["kind"] != asTable {
		if metadata, ok := object["metadata"].(document.Object); ok {
			delete(metadata, "remainingItemCount") // it counts all
		}
		return n.filter(object, "items", n.node)
	}
	if object["kind"] != asTable {
		return n.node(object)
	}
	before, _ := object["rows"].([]any)
	err := n.filter(object, "rows", n.row)
	after, _ := object["rows"].([]any)
	if err == nil && n.info.Verb != verbList && len(after) < len(before) {
		return errHidden
	}
	return err
}

// filter masks the elements of a list, and removes the hidden ones.
func (*shownNodes) filter(of document.Object, field string, mask func(document.Object) error) error {
	kept := []any{}
	elements, _ := of[field].([]any)
	for _, element := range elements {
		object, ok := element.(document.Object)
		if !ok {
			return errSilent
		}
		err := mask(object)
		if err != nil && !errors.Is(err, errHidden) {
			return err
		}
		if err == nil {
			kept = append(kept, object)
		}
	}
	of[field] = kept
	return nil
}

// rolesColumn is the column of a Table that is made of labels that no tenant sees.
const rolesColumn = 2

func (n *shownNodes) row(row document.Object) error {
	object, ok := row["object"].(document.Object)
	if !ok {
		return errHidden
	}
	if err := n.node(object); err != nil {
		return err
	}
	if n.include == metav1.IncludeNone {
		delete(row, "object")
	}
	if cells, ok := row["cells"].([]any); ok && len(cells) > rolesColumn {
		cells[rolesColumn] = "<none>"
	}
	return nil
}

// node masks a node, or the metadata of one. A bookmark has no name.
func (n *shownNodes) node(object document.Object) error {
	super := &corev1.Node{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, super); err != nil {
		return fmt.Errorf("read a node: %w", err)
	}
	if super.Name == "" {
		return nil
	}
	shown, err := n.shows(super)
	if err != nil {
		return err
	}
	if !shown {
		return errHidden
	}
	node := virtualnode.Of(super)
	node.UID, node.ResourceVersion = super.UID, super.ResourceVersion
	node.CreationTimestamp, node.DeletionTimestamp = super.CreationTimestamp, super.DeletionTimestamp
	masked, err := runtime.DefaultUnstructuredConverter.ToUnstructured(node)
	if err != nil {
		return fmt.Errorf("write a node: %w", err)
	}
	if object["spec"] == nil { // it is the metadata alone
		masked = document.Object{"metadata": masked["metadata"]}
	}
	for _, field := range []string{"apiVersion", "kind"} {
		if value, ok := object[field]; ok {
			masked[field] = value
		}
	}
	clear(object)
	maps.Copy(object, masked)
	return nil
}

// shows reports whether the tenant sees a node.
func (n *shownNodes) shows(node *corev1.Node) (bool, error) {
	if n.Nodes != nil && n.Nodes.Matches(labels.Set(node.Labels)) || n.running.Has(node.Name) {
		return true, nil
	}
	if time.Since(n.read) < runningLifetime {
		return false, nil
	}
	running, err := n.nodesWithPods(n.ctx)
	if err != nil {
		return false, err
	}
	n.running, n.read = running, time.Now()
	return running.Has(node.Name), nil
}

// nodesWithPods returns the nodes that run pods of the tenant. A Table has them
// without the pods.
func (h *Handler) nodesWithPods(ctx context.Context) (sets.Set[string], error) {
	target := h.urlOf("/api/v1/pods")
	target.RawQuery = url.Values{
		labelSelector: {names.Converted + "=" + h.Tenant}, "includeObject": {string(metav1.IncludeNone)}, resourceVersion: {"0"},
	}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", jsonType+";as=Table;g=meta.k8s.io;v=v1")
	var table metav1.Table
	code, err := exchange(h.Super, r, &table)
	if err != nil {
		return nil, err
	}
	column := slices.IndexFunc(table.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Node" })
	if code != http.StatusOK || column < 0 {
		return nil, fmt.Errorf("list the nodes of the tenant's pods: the super cluster responded %d", code)
	}
	running := sets.Set[string]{}
	for _, row := range table.Rows {
		if name, ok := row.Cells[column].(string); ok {
			running.Insert(name)
		}
	}
	return running, nil
}

// nodeSelector converts a label selector of nodes. Labels that the tenant does not
// see are as if no node had them.
func nodeSelector(asked labels.Selector) labels.Selector {
	converted := labels.NewSelector()
	requirements, selectable := asked.Requirements()
	if !selectable {
		return noNode()
	}
	for _, requirement := range requirements {
		switch {
		case virtualnode.LabelShown(requirement.Key()):
			converted = converted.Add(requirement)
		case !requirement.Matches(labels.Set{}):
			return noNode()
		}
	}
	return converted
}

// noNode selects no node: as a text, labels.Nothing selects all.
func noNode() labels.Selector {
	has, _ := labels.NewRequirement(corev1.LabelHostname, selection.Exists, nil)
	lacks, _ := labels.NewRequirement(corev1.LabelHostname, selection.DoesNotExist, nil)
	return labels.NewSelector().Add(*has, *lacks)
}

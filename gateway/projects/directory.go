// Package projects serves the projects of which a caller is a member: list, get
// and watch, from the VirtualClusters in a cache. It stores nothing.
package projects

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
	"github.com/virtualcluster/virtualcluster/gateway/members"
	"github.com/virtualcluster/virtualcluster/internal/alias"
	"github.com/virtualcluster/virtualcluster/internal/names"
)

// history is how many changes are kept for watches that begin with a
// resourceVersion.
const history = 1000

// project is a VirtualCluster as its members see it. It does not change.
type project struct {
	object  *projectsv1alpha1.Project
	members members.List
	// alias is that of the VirtualCluster, requester the user who has requested it,
	// and claim the UID of the ProjectClaim; empty for one that an admin has
	// created.
	alias, requester string
	claim            types.UID
}

// isOf reports whether a user of the super cluster is a member of the project.
func (p *project) isOf(who user.Info) bool { return p != nil && p.members.Has(who) }

// change is a project before and after a change; nil for none.
type change struct {
	version       uint64
	before, after *project
}

// Directory has all projects, and the latest changes. Its methods can be called
// at the same time.
type Directory struct {
	mu sync.Mutex
	// all are the VirtualClusters, and shown the projects of them, by UID.
	all   map[string]*tenancyv1alpha1.VirtualCluster
	shown map[string]*project
	// complete: all VirtualClusters have been added.
	complete bool
	// version is that of the latest change. Changes later than floor are known.
	version, floor uint64
	changes        []change
	watchers       map[*watcher]struct{}
}

// NewDirectory makes an empty directory.
func NewDirectory() *Directory {
	return &Directory{
		all: map[string]*tenancyv1alpha1.VirtualCluster{}, shown: map[string]*project{},
		watchers: map[*watcher]struct{}{},
	}
}

// Set adds a VirtualCluster, or replaces it. VirtualClusters come in the order of
// their resourceVersions.
func (d *Directory) Set(vc *tenancyv1alpha1.VirtualCluster) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.all[string(vc.UID)]; before != nil && before.ResourceVersion == vc.ResourceVersion {
		return // a cache says again what it has
	}
	d.all[string(vc.UID)] = vc
	d.update(vc)
}

// Remove removes a VirtualCluster.
func (d *Directory) Remove(vc *tenancyv1alpha1.VirtualCluster) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.all, string(vc.UID))
	d.update(vc)
}

// update shows a change of a VirtualCluster. Where a project has another name
// after it, or the order of changes is not known, all watches begin again.
func (d *Directory) update(vc *tenancyv1alpha1.VirtualCluster) {
	version, err := strconv.ParseUint(vc.ResourceVersion, 10, 64)
	inOrder := err == nil && version > d.version
	switch {
	case inOrder:
		d.version = version
	case d.complete:
		d.version++
	}
	renamed := false
	for _, uid := range d.affected(vc) {
		before, after := d.shown[uid], d.show(uid)
		if d.shown[uid] = after; after == nil {
			delete(d.shown, uid)
		}
		switch {
		case before != nil && after != nil && before.object.Name != after.object.Name:
			renamed = true
		case uid == string(vc.UID) && inOrder:
			d.publish(change{version: version, before: before, after: after})
		}
	}
	if !inOrder || renamed {
		d.forget()
	}
}

// SetComplete says that all VirtualClusters have been added. There are no
// projects to list before.
func (d *Directory) SetComplete() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.complete = true
}

// affected returns the UIDs of a VirtualCluster and of the others with its alias.
func (d *Directory) affected(vc *tenancyv1alpha1.VirtualCluster) []string {
	uids := []string{string(vc.UID)}
	if vc.Spec.Alias == "" {
		return uids
	}
	for uid, other := range d.all {
		if uid != uids[0] && other.Spec.Alias == vc.Spec.Alias {
			uids = append(uids, uid)
		}
	}
	return uids
}

// show returns the project of a VirtualCluster; nil if that is gone.
func (d *Directory) show(uid string) *project {
	vc, exists := d.all[uid]
	if !exists {
		return nil
	}
	key := names.ClusterKey(vc.Namespace, vc.Name, vc.UID)
	shown := &projectsv1alpha1.Project{}
	shown.SetGroupVersionKind(projectsv1alpha1.GroupVersion.WithKind(kind))
	shown.Name, shown.UID, shown.ResourceVersion = key, vc.UID, vc.ResourceVersion
	shown.CreationTimestamp, shown.DeletionTimestamp = vc.CreationTimestamp, vc.DeletionTimestamp
	shown.Status = projectsv1alpha1.ProjectStatus{Phase: string(vc.Status.Phase), ClusterKey: key, Version: vc.Status.Version}
	if d.holds(vc) {
		shown.Name = vc.Spec.Alias
	}
	return &project{
		object: shown, members: members.FromSpec(vc), alias: vc.Spec.Alias,
		requester: vc.Annotations[names.Requester], claim: types.UID(vc.Annotations[names.ProjectClaim]),
	}
}

// holds reports whether a VirtualCluster has the alias of its spec.
func (d *Directory) holds(vc *tenancyv1alpha1.VirtualCluster) bool {
	if vc.Spec.Alias == "" {
		return false
	}
	for _, other := range d.all {
		if other.Spec.Alias == vc.Spec.Alias && alias.IsOlder(other, vc) {
			return false
		}
	}
	return true
}

// publish keeps a change, and sends it to the watchers.
func (d *Directory) publish(c change) {
	if len(d.changes) == history {
		d.floor = d.changes[0].version
		d.changes = slices.Delete(d.changes, 0, 1)
	}
	d.changes = append(d.changes, c)
	for w := range d.watchers {
		if event, concerns := w.eventOf(c); concerns {
			d.send(w, event)
		}
	}
}

// Close ends all watches.
func (d *Directory) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
}

// forget ends all watches: their clients list again.
func (d *Directory) forget() {
	d.changes, d.floor = nil, d.version
	for w := range d.watchers {
		d.end(w)
	}
}

// of returns the projects of a user in the order of their names, and the
// version of the directory.
func (d *Directory) of(who user.Info) ([]*project, uint64) {
	var found []*project
	for _, p := range d.shown {
		if p.isOf(who) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *project) int { return strings.Compare(a.object.Name, b.object.Name) })
	return found, d.version
}

// find returns a project of a user.
func (d *Directory) find(who user.Info, name string) (*project, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.complete {
		return nil, ErrIncomplete
	}
	for _, p := range d.shown {
		if p.object.Name == name && p.isOf(who) {
			return p, nil
		}
	}
	return nil, apierrors.NewNotFound(resource, name)
}

// hasAlias reports whether a VirtualCluster has an alias in its spec.
func (d *Directory) hasAlias(alias string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, vc := range d.all {
		if vc.Spec.Alias == alias {
			return true
		}
	}
	return false
}

// ErrIncomplete is a directory that does not have all projects yet.
var ErrIncomplete = apierrors.NewServiceUnavailable("the gateway is reading the projects: try again")

// List returns the projects of a user in the order of their names, and the
// resourceVersion of the list.
func (d *Directory) List(who user.Info) (items []*projectsv1alpha1.Project, resourceVersion string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.complete {
		return nil, "", ErrIncomplete
	}
	found, version := d.of(who)
	for _, p := range found {
		items = append(items, p.object)
	}
	return items, strconv.FormatUint(version, 10), nil
}

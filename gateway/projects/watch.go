package projects

import (
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

// pendingEvents is how many events a watch may be behind. One that is slower
// ends, and its client begins again.
const pendingEvents = 100

// watchOptions are those of a watch.
type watchOptions struct {
	// since is the resourceVersion after which it begins; empty and 0 for the
	// state of now.
	since string
	// initial asks for the state of now and, with bookmarks, one at its end.
	initial bool
	// bookmarks asks for bookmarks.
	bookmarks bool
	// selects are the projects of which the watch is.
	selects func(*projectsv1alpha1.Project) bool
}

// watcher is a watch of the projects of a user. The directory closes events.
type watcher struct {
	watchOptions

	directory *Directory
	who       user.Info
	events    chan watch.Event
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.directory.mu.Lock()
	defer w.directory.mu.Unlock()
	w.directory.end(w)
}

// Watch returns the changes of the projects of a user.
func (d *Directory) Watch(who user.Info, options watchOptions) (watch.Interface, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.complete {
		return nil, ErrIncomplete
	}
	w := &watcher{watchOptions: options, directory: d, who: who}
	first, err := d.firstEvents(w)
	if err != nil {
		return nil, err
	}
	w.events = make(chan watch.Event, len(first)+pendingEvents)
	for _, event := range first {
		w.events <- event
	}
	d.watchers[w] = struct{}{}
	return w, nil
}

// firstEvents returns the events with which a watch begins.
func (d *Directory) firstEvents(w *watcher) ([]watch.Event, error) {
	var events []watch.Event
	if w.initial || w.since == "" || w.since == "0" {
		found, version := d.of(w.who)
		for _, p := range found {
			if w.selects(p.object) {
				events = append(events, watch.Event{Type: watch.Added, Object: p.object.DeepCopy()})
			}
		}
		if w.initial && w.bookmarks {
			events = append(events, bookmark(version, true))
		}
		return events, nil
	}
	since, err := strconv.ParseUint(w.since, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest("the resourceVersion of the watch is not a number")
	}
	if since < d.floor || since > d.version {
		return nil, apierrors.NewResourceExpired("the resourceVersion of the watch is not known: list again")
	}
	for _, c := range d.changes {
		if event, concerns := w.eventOf(c); concerns && c.version > since {
			events = append(events, event)
		}
	}
	return events, nil
}

// eventOf returns what a change is for the user of a watch. One who is a member
// no more sees a deletion.
func (w *watcher) eventOf(c change) (watch.Event, bool) {
	before, after := w.sees(c.before), w.sees(c.after)
	event := watch.Event{}
	shown := c.after
	switch {
	case before && after:
		event.Type = watch.Modified
	case after:
		event.Type = watch.Added
	case before:
		event.Type, shown = watch.Deleted, c.before
	default:
		return event, false
	}
	object := shown.object.DeepCopy()
	object.ResourceVersion = strconv.FormatUint(c.version, 10)
	event.Object = object
	return event, true
}

func (w *watcher) sees(p *project) bool { return p.isOf(w.who) && w.selects(p.object) }

// send sends a change to a watch, or ends it if its client is too slow.
func (d *Directory) send(w *watcher, event watch.Event) {
	select {
	case w.events <- event:
	default:
		d.end(w)
	}
}

// end ends a watch that has not ended yet.
func (d *Directory) end(w *watcher) {
	if _, open := d.watchers[w]; open {
		delete(d.watchers, w)
		close(w.events)
	}
}

// Bookmark sends the version of the directory to the watches that ask for it.
func (d *Directory) Bookmark() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.watchers {
		if w.bookmarks {
			d.send(w, bookmark(d.version, false))
		}
	}
}

// bookmark returns the event of a version. The first one ends the state at the
// beginning of a watch.
func bookmark(version uint64, first bool) watch.Event {
	object := &projectsv1alpha1.Project{}
	object.SetGroupVersionKind(projectsv1alpha1.GroupVersion.WithKind(kind))
	object.ResourceVersion = strconv.FormatUint(version, 10)
	if first {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return watch.Event{Type: watch.Bookmark, Object: object}
}

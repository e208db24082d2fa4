package projects

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	projectsv1alpha1 "github.com/virtualcluster/virtualcluster/apis/projects/v1alpha1"
)

const kind = "Project"

// storage reads the projects of the user in the context.
type storage struct{ directory *Directory }

var _ interface {
	rest.Lister
	rest.Getter
	rest.Watcher
} = storage{}

// NewList implements rest.Lister.
func (storage) NewList() runtime.Object { return &projectsv1alpha1.ProjectList{} }

// Get implements rest.Getter. A project of others is like one that does not
// exist.
func (s storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	who, err := userOf(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.directory.find(who, name)
	if err != nil {
		return nil, err
	}
	return found.object.DeepCopy(), nil
}

// List implements rest.Lister.
func (s storage) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	who, err := userOf(ctx)
	if err != nil {
		return nil, err
	}
	items, version, err := s.directory.List(who)
	if err != nil {
		return nil, err
	}
	list := &projectsv1alpha1.ProjectList{Items: []projectsv1alpha1.Project{}}
	list.ResourceVersion = version
	selects := selector(options)
	for _, item := range items {
		if selects(item) {
			list.Items = append(list.Items, *item.DeepCopy())
		}
	}
	return list, nil
}

// Watch implements rest.Watcher.
func (s storage) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	who, err := userOf(ctx)
	if err != nil {
		return nil, err
	}
	return s.directory.Watch(who, watchOptions{
		since: options.ResourceVersion, initial: options.SendInitialEvents != nil && *options.SendInitialEvents,
		bookmarks: options.AllowWatchBookmarks, selects: selector(options),
	})
}

func userOf(ctx context.Context) (user.Info, error) {
	who, found := request.UserFrom(ctx)
	if !found {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	return who, nil
}

// selector returns which projects the options select.
func selector(options *internalversion.ListOptions) func(*projectsv1alpha1.Project) bool {
	byLabel, byField := labels.Everything(), fields.Everything()
	if options != nil && options.LabelSelector != nil {
		byLabel = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		byField = options.FieldSelector
	}
	return func(p *projectsv1alpha1.Project) bool {
		return byLabel.Matches(labels.Set(p.Labels)) && byField.Matches(fields.Set{metav1.ObjectNameField: p.Name})
	}
}

// ConvertToTable implements rest.TableConvertor.
func (storage) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	const text = "string"
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: text, Format: "name", Description: "The name of the project."},
		{Name: "Phase", Type: text, Description: "The state of the project."},
		{Name: "Version", Type: text, Description: "The Kubernetes version of the project."},
		{Name: "Age", Type: "date", Description: "The time since the project was created."},
		{Name: "Key", Type: text, Priority: 1, Description: "The name of the project that never changes."},
	}}
	switch of := object.(type) {
	case *projectsv1alpha1.ProjectList:
		table.ResourceVersion = of.ResourceVersion
		for i := range of.Items {
			table.Rows = append(table.Rows, rowOf(&of.Items[i]))
		}
	case *projectsv1alpha1.Project:
		table.ResourceVersion = of.ResourceVersion
		table.Rows = []metav1.TableRow{rowOf(of)}
	default:
		return nil, apierrors.NewInternalError(errors.New("an object is no project"))
	}
	return table, nil
}

func rowOf(p *projectsv1alpha1.Project) metav1.TableRow {
	age := "<unknown>"
	if !p.CreationTimestamp.IsZero() {
		age = duration.HumanDuration(time.Since(p.CreationTimestamp.Time))
	}
	return metav1.TableRow{
		Cells:  []any{p.Name, p.Status.Phase, p.Status.Version, age, p.Status.ClusterKey},
		Object: runtime.RawExtension{Object: p},
	}
}

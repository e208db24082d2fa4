package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/virtualcluster/virtualcluster/internal/names"
	"github.com/virtualcluster/virtualcluster/test/bench/measure"
	"github.com/virtualcluster/virtualcluster/test/bench/report"
)

const (
	// listedProjects is the number of projects that the objects belong to.
	listedProjects = 100
	// listedBytes is the size of the data of an object.
	listedBytes = 1 << 10
	// projectLists is the number of lists that are measured in a run.
	projectLists = 50
)

// projects measures how long the super cluster takes to list the objects of one
// project by its label, among those of many.
func (w *world) projects(ctx context.Context) error {
	s := &report.Scenario{Name: "projects", Size: fmt.Sprintf("%d ConfigMaps of %d projects, 1 KiB each", w.opts.ProjectObjects, listedProjects)}
	w.progress.sayf("creating %d objects", w.opts.ProjectObjects)
	if err := w.createListed(ctx); err != nil {
		return err
	}
	config := rest.CopyConfig(w.super.Config)
	config.QPS = -1
	super, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the super cluster: %w", err)
	}
	for run := range w.opts.Runs {
		w.progress.sayf("run %d of %d", run+1, w.opts.Runs)
		for name, selector := range map[string]string{
			"one project by its labels": projectLabels(run % listedProjects).String(),
			"all":                       apilabels.SelectorFromSet(apilabels.Set{madeBy: mine}).String(),
		} {
			if err := listConfigMaps(ctx, s, super, name, selector); err != nil {
				return err
			}
		}
	}
	return w.publish(s)
}

// createListed creates the objects, with the labels of copies.
func (w *world) createListed(ctx context.Context) error {
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(2 * starting)
	for i := range w.opts.ProjectObjects {
		group.Go(func() error {
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: mine, Name: fmt.Sprintf("listed-%05d", i), Labels: apilabels.Merge(projectLabels(i%listedProjects), apilabels.Set{madeBy: mine}),
				},
				Data: map[string]string{"data": strings.Repeat("x", listedBytes)},
			}
			if err := w.super.Client.Create(limited, object); err != nil {
				return fmt.Errorf("create ConfigMap %s: %w", object.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// projectLabels are those of all objects of a project.
func projectLabels(project int) apilabels.Set {
	return apilabels.Set{names.VCNamespace: mine, names.VCName: fmt.Sprintf("project-%03d", project)}
}

// listConfigMaps lists the ConfigMaps that a selector selects, many times.
func listConfigMaps(ctx context.Context, s *report.Scenario, super kubernetes.Interface, name, selector string) error {
	var times []time.Duration
	size := 0
	for range projectLists {
		began := time.Now()
		content, err := super.CoreV1().RESTClient().Get().Resource("configmaps").Param("labelSelector", selector).Do(ctx).Raw()
		if err != nil {
			return fmt.Errorf("list ConfigMaps: %w", err)
		}
		times, size = append(times, time.Since(began)), len(content)
	}
	slices.Sort(times)
	s.AddLatency("list "+name, times)
	s.Add("response for "+name, "MiB", float64(size)/measure.MiB, 1)
	return nil
}

// Command podtemplates is a syncer that also syncs PodTemplates. It imports what
// others can, and nothing else.
package main

import (
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/virtualcluster/virtualcluster/syncer/app"
	"github.com/virtualcluster/virtualcluster/syncer/kinds"
)

// PodTemplate is synced down. No controller of the super cluster reads the copies.
func PodTemplate() kinds.Flow {
	return kinds.Down[*corev1.PodTemplate]{
		Name:    "PodTemplate",
		Object:  &corev1.PodTemplate{},
		List:    &corev1.PodTemplateList{},
		Summary: "down",
		Desired: func(_ kinds.View, tenant *corev1.PodTemplate) (*corev1.PodTemplate, error) {
			return &corev1.PodTemplate{Template: *tenant.Template.DeepCopy()}, nil
		},
		Merge: func(super, desired *corev1.PodTemplate) { super.Template = desired.Template },
	}
}

func main() {
	command := app.NewExtendedCommand(app.Extensions{Kinds: []kinds.Flow{PodTemplate()}})
	if err := command.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

package doctor

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/virtualcluster/virtualcluster/cli/installation"
	"github.com/virtualcluster/virtualcluster/config/rbac"
)

// roles checks whether the components have the rights of this version.
func roles(ctx context.Context, s *Super) Result {
	var wrong []string
	for _, name := range installation.Deployments() {
		_, err := workload{name: name}.read(ctx, s)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return unread(err)
		}
		objects, err := rbac.For(name)
		if err != nil {
			return unread(err)
		}
		for _, want := range objects {
			problem, err := s.roleProblem(ctx, want)
			if err != nil {
				return unread(err)
			}
			if problem != "" {
				wrong = append(wrong, problem)
			}
		}
	}
	return rolesVerdict(wrong)
}

// rolesVerdict judges by what is wrong with roles and bindings.
func rolesVerdict(wrong []string) Result {
	if len(wrong) == 0 {
		return ok("the components have the rights of this version")
	}
	return failed("Upgrade the installation: helm upgrade, or kubectl apply -k config/default", "%s", enumerate(wrong))
}

// roleProblem compares a role or a binding with that of the installation; empty
// if nothing is wrong, or the object is of another kind.
func (s *Super) roleProblem(ctx context.Context, want *unstructured.Unstructured) (string, error) {
	kind := want.GetKind()
	if want.GroupVersionKind().Group != rbacv1.GroupName {
		return "", nil
	}
	s.relocate(want)
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(want.GroupVersionKind())
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("%s %s does not exist", kind, want.GetName()), nil
	}
	if err != nil {
		return "", fmt.Errorf("get %s %s: %w", kind, want.GetName(), err)
	}
	if _, binding, _ := unstructured.NestedMap(want.Object, "roleRef"); binding {
		return bindingProblem(want, have)
	}
	return rulesProblem(want, have)
}

// relocate moves an object from the namespace in the manifests to that of the
// installation.
func (s *Super) relocate(obj *unstructured.Unstructured) {
	if obj.GetNamespace() == rbac.Namespace {
		obj.SetNamespace(s.Installation)
	}
	subjects, _, _ := unstructured.NestedSlice(obj.Object, "subjects")
	for _, subject := range subjects {
		if fields, isMap := subject.(map[string]any); isMap && fields["namespace"] == rbac.Namespace {
			fields["namespace"] = s.Installation
		}
	}
	if len(subjects) > 0 {
		_ = unstructured.SetNestedSlice(obj.Object, subjects, "subjects") // values were read of it
	}
}

// rulesProblem returns the rights that a role lacks.
func rulesProblem(want, have *unstructured.Unstructured) (string, error) {
	var wanted, granted rbacv1.ClusterRole // a Role has the same rules
	for from, into := range map[*unstructured.Unstructured]*rbacv1.ClusterRole{want: &wanted, have: &granted} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
			return "", fmt.Errorf("read %s %s: %w", from.GetKind(), from.GetName(), err)
		}
	}
	covered, missing := validation.Covers(granted.Rules, wanted.Rules)
	if covered {
		return "", nil
	}
	return fmt.Sprintf("%s %s lacks %s", want.GetKind(), want.GetName(), describeRule(missing[0])), nil
}

// describeRule names the first right of a rule.
func describeRule(rule rbacv1.PolicyRule) string {
	first := func(values []string) string { return append(slices.Clone(values), "")[0] }
	return right{first(rule.Verbs), first(rule.APIGroups), first(rule.Resources)}.String()
}

// bindingProblem returns what is wrong with a binding.
func bindingProblem(want, have *unstructured.Unstructured) (string, error) {
	var wanted, found rbacv1.ClusterRoleBinding // a RoleBinding has the same fields
	for from, into := range map[*unstructured.Unstructured]*rbacv1.ClusterRoleBinding{want: &wanted, have: &found} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
			return "", fmt.Errorf("read %s %s: %w", from.GetKind(), from.GetName(), err)
		}
	}
	if wanted.RoleRef.Name != found.RoleRef.Name || wanted.RoleRef.Kind != found.RoleRef.Kind {
		return fmt.Sprintf("%s %s is for %s %s", want.GetKind(), want.GetName(), found.RoleRef.Kind, found.RoleRef.Name), nil
	}
	for _, subject := range wanted.Subjects {
		if !slices.ContainsFunc(found.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == subject.Kind && s.Name == subject.Name && s.Namespace == subject.Namespace
		}) {
			return fmt.Sprintf("%s %s does not name %s %s/%s",
				want.GetKind(), want.GetName(), subject.Kind, subject.Namespace, subject.Name), nil
		}
	}
	return "", nil
}

// Package upstream has the tests that fail when a Kubernetes minor changes
// something on which package hosted depends without calling it: the API groups,
// admission plugins, hooks and controllers of a control plane, the source text
// of functions that hosted assembles again, and the places at which upstream
// makes a context of its own.
//
// Each test compares upstream with a list in testdata, in which every entry has
// its decision. docs/kubernetes-minors.md describes how to update the lists.
package upstream

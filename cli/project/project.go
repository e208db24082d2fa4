// Package project keeps the default project in a context of a kubeconfig: the
// server of the context is that of the project at the gateway.
package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// extension is the extension of a context that holds its default project.
const extension = "tenancy.x-k8s.io/project"

// clusterSuffix ends the name of the cluster that Use adds for a context.
const clusterSuffix = "/project"

// tenantsPath precedes the name of a tenant in the server of a kubeconfig.
const tenantsPath = "/tenants/"

// choice is the default project of a context, and the cluster that the context
// had without it.
type choice struct {
	Project string `json:"project"`
	Cluster string `json:"cluster"`
}

// Server returns the server of a project at the gateway of a server, which may
// be that of any project.
func Server(server, project string) string {
	base, _, _ := strings.Cut(server, tenantsPath)
	return strings.TrimSuffix(base, "/") + tenantsPath + project
}

// Current returns the default project of a context; empty for none.
func Current(config *clientcmdapi.Config, context string) string {
	if entry := config.Contexts[context]; entry != nil {
		return chosen(entry).Project
	}
	return ""
}

// Use makes a project the default of a context.
func Use(config *clientcmdapi.Config, context, project string) error {
	entry := config.Contexts[context]
	if entry == nil {
		return fmt.Errorf("the kubeconfig has no context %q", context)
	}
	before := chosen(entry)
	if before.Project == "" {
		before.Cluster = entry.Cluster
	}
	cluster := config.Clusters[before.Cluster]
	if cluster == nil {
		return fmt.Errorf("the kubeconfig has no cluster %q, which context %q uses", before.Cluster, context)
	}
	name := context + clusterSuffix
	if _, taken := config.Clusters[name]; taken && entry.Cluster != name {
		return fmt.Errorf("the kubeconfig has a cluster %q already", name)
	}
	data, err := json.Marshal(choice{Project: project, Cluster: before.Cluster})
	if err != nil {
		return err
	}
	of := cluster.DeepCopy()
	of.Server = Server(cluster.Server, project)
	config.Clusters[name], entry.Cluster = of, name
	if entry.Extensions == nil {
		entry.Extensions = map[string]runtime.Object{}
	}
	entry.Extensions[extension] = &runtime.Unknown{Raw: data, ContentType: runtime.ContentTypeJSON}
	return nil
}

// ErrNone is a context without a default project.
var ErrNone = errors.New("there is no default project")

// Unset removes the default project of a context, and returns it.
func Unset(config *clientcmdapi.Config, context string) (string, error) {
	project := Current(config, context)
	if project == "" {
		return "", ErrNone
	}
	entry := config.Contexts[context]
	entry.Cluster = chosen(entry).Cluster
	delete(entry.Extensions, extension)
	delete(config.Clusters, context+clusterSuffix)
	return project, nil
}

// chosen returns the choice in a context; the zero value for none, and for one
// that something else has written.
func chosen(entry *clientcmdapi.Context) choice {
	unknown, ok := entry.Extensions[extension].(*runtime.Unknown)
	if !ok {
		return choice{}
	}
	var found choice
	if json.Unmarshal(unknown.Raw, &found) != nil || found.Cluster == "" {
		return choice{}
	}
	return found
}

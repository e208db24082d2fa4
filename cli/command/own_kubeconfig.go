package command

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ownKubeconfig is the user's kubeconfig, which may consist of several files.
type ownKubeconfig struct {
	files  *clientcmd.PathOptions
	config *clientcmdapi.Config
}

// ownKubeconfig reads the user's kubeconfig.
func (p *platform) ownKubeconfig() (*ownKubeconfig, error) {
	files := clientcmd.NewDefaultPathOptions()
	files.LoadingRules.ExplicitPath = *p.flags.KubeConfig
	config, err := files.GetStartingConfig()
	if err != nil {
		return nil, fmt.Errorf("read your kubeconfig: %w", err)
	}
	return &ownKubeconfig{files: files, config: config}, nil
}

// write writes what has changed.
func (o *ownKubeconfig) write() error {
	if err := clientcmd.ModifyConfig(o.files, *o.config, true); err != nil {
		return fmt.Errorf("write your kubeconfig: %w", err)
	}
	return nil
}

//go:build linux

// Command node-policies enforces NetworkPolicies on a node, beside kube-proxy.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2/textlogger"

	"github.com/virtualcluster/virtualcluster/standalone/nodes/linux/policies"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "kubeconfig of the cluster whose NetworkPolicies to enforce")
	runtime := flag.String("runtime", "", "CRI endpoint of the node's container runtime")
	namespace := flag.String("network-namespace", "", "path of the network namespace to filter; default: that of the process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	log := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(os.Stderr)))
	err := run(ctx, *kubeconfig, policies.Options{Runtime: *runtime, Namespace: *namespace, Log: log})
	stop()
	if err != nil {
		log.Error(err, "Stopped enforcing NetworkPolicies")
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, opts policies.Options) error {
	if kubeconfig == "" || opts.Runtime == "" {
		return errors.New("--kubeconfig and --runtime are required")
	}
	var err error
	if opts.Cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return err
	}
	return policies.Run(ctx, opts)
}

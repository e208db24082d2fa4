package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
)

const (
	// e2e is where the images of Kubernetes' own tests come from.
	e2e = "registry.k8s.io/e2e-test-images/"
	// Images from which several others are built, by their names in Kubernetes
	// 1.36 and its tests.
	agnhostImage = e2e + "agnhost:2.63.0"
	busyboxImage = e2e + "busybox:1.37.0-1"
)

// catalog is every image that a node has by itself. The versions are those that
// Kubernetes 1.36 and its tests name.
func catalog(ctx context.Context, programs string) ([]image, error) {
	tools, err := busybox(ctx, "bin")
	if err != nil {
		return nil, err
	}
	return []image{
		{
			reference: "registry.k8s.io/pause:3.10.2", layers: [][]archive.Entry{built(programs, "pause")},
			config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
		},
		{
			reference: "registry.k8s.io/coredns/coredns:v1.14.2", layers: [][]archive.Entry{accounts(), built(programs, "coredns")},
			config: v1.Config{Entrypoint: []string{"/coredns"}, WorkingDir: "/"},
		},
		{
			reference: "docker.io/library/vc-dns:latest", layers: [][]archive.Entry{accounts(), built(programs, "vc-dns")},
			config: v1.Config{Entrypoint: []string{"/vc-dns"}, User: "65532:65532"},
		},
		{
			reference: "docker.io/library/kubectl-vc:latest", layers: [][]archive.Entry{accounts(), built(programs, "kubectl-vc")},
			config: v1.Config{Entrypoint: []string{"/kubectl-vc"}, User: "65532:65532"},
		},
		{
			reference: "registry.k8s.io/metrics-server/metrics-server:v0.9.0", layers: [][]archive.Entry{accounts(), built(programs, "metrics-server")},
			config: v1.Config{Entrypoint: []string{"/metrics-server"}, User: "65534:65534"},
		},
		{
			reference: busyboxImage, layers: [][]archive.Entry{accounts(), tools},
			config: v1.Config{Cmd: []string{"sh"}},
		},
		{
			reference: agnhostImage, layers: [][]archive.Entry{accounts(), tools, agnhost(programs)},
			config: agnhostConfig("pause"),
		},
	}, nil
}

// traefik is the controller of Gateways that specs of routes run.
func traefik(programs string) image {
	return image{
		reference: "docker.io/library/traefik:v3.6.12", layers: [][]archive.Entry{accounts(), built(programs, "traefik")},
		config: v1.Config{Entrypoint: []string{"/traefik"}},
	}
}

// built is a program that was built for images, in the root directory.
func built(programs, name string) []archive.Entry {
	return []archive.Entry{{Path: name, Source: filepath.Join(programs, name), Mode: archive.Program}}
}

// agnhost is what serves, connects and waits in tests.
func agnhost(programs string) []archive.Entry {
	return append(built(programs, "agnhost"), archive.Entry{Path: "agnhost-2", Link: "agnhost"}, archive.Entry{Path: "uploads", Mode: archive.Program})
}

func agnhostConfig(args ...string) v1.Config {
	return v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: args}
}

// accounts are the users and groups that tests of Kubernetes expect in agnhost's image.
func accounts() []archive.Entry {
	const (
		passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n" +
			"user-defined-in-image:x:1000:1000::/:/bin/sh\n"
		group = "root:x:0:\nnobody:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"
	)
	return []archive.Entry{
		{Path: "etc", Mode: archive.Program},
		{Path: "etc/passwd", Content: []byte(passwd), Mode: archive.Readable},
		{Path: "etc/group", Content: []byte(group), Mode: archive.Readable},
		{Path: "tmp", Mode: archive.Shared},
	}
}

// busybox is the machine's static busybox in a directory, with a link for each
// of its tools.
func busybox(ctx context.Context, dir string) ([]archive.Entry, error) {
	source, err := exec.LookPath("busybox")
	if err != nil {
		return nil, errors.New("busybox is missing: apt-get install busybox-static")
	}
	list, err := exec.CommandContext(ctx, source, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tools of %s: %w", source, err)
	}
	entries := []archive.Entry{{Path: dir, Mode: archive.Program}, {Path: path.Join(dir, "busybox"), Source: source, Mode: archive.Program}}
	for tool := range strings.FieldsSeq(string(list)) {
		if tool != "busybox" {
			entries = append(entries, archive.Entry{Path: path.Join(dir, tool), Link: "busybox"})
		}
	}
	return entries, nil
}

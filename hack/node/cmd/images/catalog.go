package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	program   = 0o755
	readable  = 0o644
	shared    = 0o1777
	busyboxAt = "/bin/busybox"
	// e2e is where the images of Kubernetes' own tests come from.
	e2e = "registry.k8s.io/e2e-test-images/"
)

// catalog is every image. The versions are those that Kubernetes 1.36 and its tests name.
func catalog(ctx context.Context, programs string) ([]image, error) {
	tools, err := busybox(ctx)
	if err != nil {
		return nil, err
	}
	accounts := []entry{
		{path: "etc", mode: program},
		{path: "etc/passwd", content: []byte(passwd), mode: readable},
		{path: "etc/group", content: []byte(group), mode: readable},
		{path: "tmp", mode: shared},
	}
	built := func(name string) []entry {
		return []entry{{path: name, source: filepath.Join(programs, name), mode: program}}
	}
	return []image{
		{
			reference: "registry.k8s.io/pause:3.10.2", layers: [][]entry{built("pause")},
			config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
		},
		{
			reference: "registry.k8s.io/coredns/coredns:v1.14.2", layers: [][]entry{accounts, built("coredns")},
			config: v1.Config{Entrypoint: []string{"/coredns"}, WorkingDir: "/"},
		},
		{
			reference: e2e + "busybox:1.37.0-1", layers: [][]entry{accounts, tools},
			config: v1.Config{Cmd: []string{"sh"}},
		},
		{
			reference: e2e + "agnhost:2.63.0",
			layers: [][]entry{
				accounts, tools, built("agnhost"),
				{{path: "agnhost-2", link: "agnhost"}, {path: "uploads", mode: program}},
			},
			config: v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}},
		},
	}, nil
}

// The user and the groups that tests of Kubernetes expect in agnhost's image.
const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser-defined-in-image:x:1000:1000::/:/bin/sh\n"
	group  = "root:x:0:\nnobody:x:65534:\nuser-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"
)

// busybox is the machine's static busybox with a link for each of its tools.
func busybox(ctx context.Context) ([]entry, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, errors.New("busybox is missing: apt-get install busybox-static")
	}
	list, err := exec.CommandContext(ctx, path, "--list").Output() //nolint:gosec // it is busybox
	if err != nil {
		return nil, fmt.Errorf("list the tools of %s: %w", path, err)
	}
	entries := []entry{{path: "bin", mode: program}, {path: busyboxAt[1:], source: path, mode: program}}
	for tool := range strings.FieldsSeq(string(list)) {
		if tool != "busybox" {
			entries = append(entries, entry{path: "bin/" + tool, link: busyboxAt})
		}
	}
	return entries, nil
}

package main

import (
	"context"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/virtualcluster/virtualcluster/hack/release/archive"
	"github.com/virtualcluster/virtualcluster/hack/release/oci"
)

// setUID has a program run as who owns it.
const setUID = 0o4755

// conformance is what Kubernetes' conformance suite runs. Its images are of
// other distributions; these have the same programs from Debian's packages.
func conformance(ctx context.Context, programs, kubernetes string) ([]image, error) {
	base, err := distribution(ctx)
	if err != nil {
		return nil, err
	}
	tests := filepath.Join(kubernetes, "test", "images")
	// some is an image with the tools of a distribution.
	some := func(reference string, config v1.Config, layers ...[]archive.Entry) image {
		return image{reference: reference, base: base, layers: append([][]archive.Entry{accounts(), shell()}, layers...), config: config}
	}
	serving := append(agnhost(programs), certificate(tests)...)
	return []image{
		some(agnhostImage, agnhostConfig("pause"), serving),
		some(busyboxImage, v1.Config{Cmd: []string{"sh"}}),
		some(e2e+"agnhost:2.55", agnhostConfig("pause"), serving),
		some(e2e+"kitten:1.8", agnhostConfig("test-webserver"), serving, pictures(tests, "kitten")),
		some(e2e+"nautilus:1.8", agnhostConfig("test-webserver"), serving, pictures(tests, "nautilus")),
		some(e2e+"glibc-dns-testing:2.0.0", v1.Config{Cmd: []string{"bash"}}),
		some(e2e+"nginx:1.15-4", nginx(), nginxFiles()),
		some(e2e+"nginx:1.27-0", nginx(), nginxFiles()),
		some(e2e+"nonroot:1.5", v1.Config{User: "1234", Cmd: []string{"bash"}}),
		some(e2e+"nonewprivs:1.4", v1.Config{Cmd: []string{"nnp"}}, []archive.Entry{
			{Path: "usr/local/bin", Mode: archive.Program},
			{Path: "usr/local/bin/nnp", Source: filepath.Join(programs, "nonewprivs"), Mode: setUID},
		}),
		some(e2e+"sample-apiserver:1.29.2", v1.Config{Entrypoint: []string{"/sample-apiserver"}}, built(programs, "sample-apiserver")),
		{
			reference: "registry.k8s.io/etcd:3.6.8-0", layers: [][]archive.Entry{{
				{Path: "usr/local/bin", Mode: archive.Program},
				{Path: "usr/local/bin/etcd", Source: filepath.Join(programs, "etcd"), Mode: archive.Program},
			}},
		},
	}, nil
}

// distribution has the tools that specs call in containers: those of Debian's
// packages, and of busybox where there is none.
func distribution(ctx context.Context) ([]v1.Layer, error) {
	tools, err := busybox(ctx, "usr/bin")
	if err != nil {
		return nil, err
	}
	below, err := oci.NewLayer(tools)
	if err != nil {
		return nil, err
	}
	above, err := debian(ctx, "bash", "coreutils", "libc-bin", "bind9-dnsutils", "curl", "netcat-openbsd", "iproute2", "iperf", "nginx")
	return []v1.Layer{below, above}, err
}

// shell is what the packages' own scripts would have set up. The shell is bash:
// it hands on variables with any name, as the one in the original images does.
func shell() []archive.Entry {
	return []archive.Entry{
		{Path: "bin/sh", Link: "/bin/bash"},
		{Path: "usr/bin/sh", Link: "/bin/bash"},
		{Path: "usr/bin/nc", Link: "/bin/nc.openbsd"},
		{Path: "bin/sysctl", Link: "/usr/bin/busybox"},
		{Path: "etc/nsswitch.conf", Content: []byte("passwd: files\ngroup: files\nhosts: files dns\n"), Mode: archive.Readable},
	}
}

// certificate is what agnhost serves HTTPS with.
func certificate(tests string) []archive.Entry {
	dir := filepath.Join(tests, "agnhost", "porter")
	return []archive.Entry{
		{Path: "localhost.crt", Source: filepath.Join(dir, "localhost.crt"), Mode: archive.Readable},
		{Path: "localhost.key", Source: filepath.Join(dir, "localhost.key"), Mode: archive.Readable},
	}
}

// pictures are what an image of that name serves.
func pictures(tests, name string) []archive.Entry {
	dir := filepath.Join(tests, name, "html")
	return []archive.Entry{
		{Path: name + ".jpg", Source: filepath.Join(dir, name+".jpg"), Mode: archive.Readable},
		{Path: "data.json", Source: filepath.Join(dir, "data.json"), Mode: archive.Readable},
	}
}

func nginx() v1.Config { return v1.Config{Cmd: []string{"nginx", "-g", "daemon off;"}} }

// nginxFiles are a configuration as in the original image: logs go to the
// container's, and pages come from where specs put them.
func nginxFiles() []archive.Entry {
	const configuration = `user nobody nobody;
error_log /dev/stderr;
pid /tmp/nginx.pid;
events {}
http {
    access_log /dev/stdout;
    server {
        listen 80;
        root /usr/share/nginx/html;
    }
}
`
	return []archive.Entry{
		{Path: "etc/nginx/nginx.conf", Content: []byte(configuration), Mode: archive.Readable},
		{Path: "var/log/nginx", Mode: archive.Program},
		{Path: "var/lib/nginx", Mode: archive.Program},
	}
}

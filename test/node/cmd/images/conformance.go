package main

import (
	"context"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
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
	some := func(reference string, config v1.Config, layers ...[]entry) image {
		return image{reference: reference, base: base, layers: append([][]entry{accounts(), shell()}, layers...), config: config}
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
		some(e2e+"nonewprivs:1.4", v1.Config{Cmd: []string{"nnp"}}, []entry{
			{path: "usr/local/bin", mode: program},
			{path: "usr/local/bin/nnp", source: filepath.Join(programs, "nonewprivs"), mode: setUID},
		}),
		some(e2e+"sample-apiserver:1.29.2", v1.Config{Entrypoint: []string{"/sample-apiserver"}}, built(programs, "sample-apiserver")),
		{
			reference: "registry.k8s.io/etcd:3.6.8-0", layers: [][]entry{{
				{path: "usr/local/bin", mode: program},
				{path: "usr/local/bin/etcd", source: filepath.Join(programs, "etcd"), mode: program},
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
	below, err := newLayer(tools)
	if err != nil {
		return nil, err
	}
	above, err := debian(ctx, "bash", "coreutils", "libc-bin", "bind9-dnsutils", "curl", "netcat-openbsd", "iproute2", "iperf", "nginx")
	return []v1.Layer{below, above}, err
}

// shell is what the packages' own scripts would have set up. The shell is bash:
// it hands on variables with any name, as the one in the original images does.
func shell() []entry {
	return []entry{
		{path: "bin/sh", link: "/bin/bash"},
		{path: "usr/bin/sh", link: "/bin/bash"},
		{path: "usr/bin/nc", link: "/bin/nc.openbsd"},
		{path: "bin/sysctl", link: "/usr/bin/busybox"},
		{path: "etc/nsswitch.conf", content: []byte("passwd: files\ngroup: files\nhosts: files dns\n"), mode: readable},
	}
}

// certificate is what agnhost serves HTTPS with.
func certificate(tests string) []entry {
	dir := filepath.Join(tests, "agnhost", "porter")
	return []entry{
		{path: "localhost.crt", source: filepath.Join(dir, "localhost.crt"), mode: readable},
		{path: "localhost.key", source: filepath.Join(dir, "localhost.key"), mode: readable},
	}
}

// pictures are what an image of that name serves.
func pictures(tests, name string) []entry {
	dir := filepath.Join(tests, name, "html")
	return []entry{
		{path: name + ".jpg", source: filepath.Join(dir, name+".jpg"), mode: readable},
		{path: "data.json", source: filepath.Join(dir, "data.json"), mode: readable},
	}
}

func nginx() v1.Config { return v1.Config{Cmd: []string{"nginx", "-g", "daemon off;"}} }

// nginxFiles are a configuration as in the original image: logs go to the
// container's, and pages come from where specs put them.
func nginxFiles() []entry {
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
	return []entry{
		{path: "etc/nginx/nginx.conf", content: []byte(configuration), mode: readable},
		{path: "var/log/nginx", mode: program},
		{path: "var/lib/nginx", mode: program},
	}
}

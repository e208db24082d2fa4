// Command vc-dns is CoreDNS with the names of many tenants: each has a port of
// its own, at which only its pods are answered.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/pprof"
	_ "github.com/coredns/coredns/plugin/ready"

	"github.com/virtualcluster/virtualcluster/dns/tenants"
)

func main() {
	tenants.Register()
	// The order in which a query passes the plugins: the names of tenants come
	// before the cache, which has one name once for all tenants.
	dnsserver.Directives = []string{
		"bind", "health", "ready", "pprof",
		tenants.Listeners, "prometheus", "errors", "log", "loadbalance", tenants.Names, "cache", "forward",
	}
	coremain.Run()
}

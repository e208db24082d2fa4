// Package tenants is two plugins of CoreDNS that serve the DNS of many tenants
// in one process. The plugin tenants listens at a port of each tenant, admits
// the queries of the tenant's own pods, and limits them. The plugin tenantnames
// answers them with the names of that tenant, by CoreDNS' own plugin
// kubernetes. All data is that of the super cluster: the copies of tenants'
// Services and pods, and the EndpointSlices of its controllers.
package tenants

// Package keyspace divides one etcd among tenants. Each tenant has the keys
// below a prefix of its own, and no other package builds or splits these keys.
//
// A confined client takes the tenant from the context of each call, and puts
// its prefix before every key. So the storage of one apiserver serves many
// tenants, and its code names the keys of none of them. A call without a
// tenant fails: there is no default.
package keyspace

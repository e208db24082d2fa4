// Package networks gives tenants the API of networks, reports the state of each
// network, and tells the packages that sync pods and Services which networks
// these can use.
package networks

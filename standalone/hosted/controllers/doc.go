// Package controllers runs Kubernetes' controllers beside an apiserver, without
// changes: all at once ([Start]), or each only while the cluster has objects of
// the kinds that it works on ([StartByNeed]).
package controllers

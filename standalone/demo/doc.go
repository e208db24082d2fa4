// Package demo shows on a running super cluster what tenants are: three of them
// work under the same names side by side, one of them without a control plane, and
// leave nothing behind. It uses nothing but what users have, kubeconfigs and the API.
package demo

// Package vnagent is vn-agent: it answers the kubelet API towards tenants'
// apiservers, in the place of the nodes that their virtual nodes stand for. It
// knows an apiserver by the authority of its client certificate, looks whether
// the pod is the tenant's, and hands the request on to the super cluster's
// apiserver, with rights of its own and no credentials of any kubelet. It
// serves the resource metrics API, too.
package vnagent

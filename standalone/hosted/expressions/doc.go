// Package expressions limits how much work the expressions are that a control
// plane stores: those of policies, webhooks, CustomResourceDefinitions and devices,
// whose programs the process keeps, and compiles again when it starts.
//
// An [Account] has the work of each record. A write reserves what it needs, and
// knows the revision at which it was stored. All else comes from the feed of etcd:
// what was stored before, what another host writes during a hand-over, and writes
// of which the result is not known. The records are read at the first write that
// has expressions, so that a control plane without any needs nothing.
package expressions

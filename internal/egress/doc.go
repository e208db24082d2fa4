// Package egress decides what the apiserver of a hosted tenant may connect to,
// and makes the connections. A tenant's apiserver runs in the platform's
// process, and its users say where webhooks, aggregated APIs, nodes and pods
// are: without a decision of the platform's own, they would read and write to
// the platform's network. The same decision is made for the addresses of external
// control planes, to which the gateway connects.
package egress

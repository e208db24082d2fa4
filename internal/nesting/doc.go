// Package nesting refuses encoded objects that are nested so deep that to decode
// them would cost more than a request may.
//
// Upstream's decoders call themselves for each level. That of protobuf has no
// limit: a deep schema overflows the stack, which ends the process, and nothing
// can recover from that. It also lets the value of a map's entry reach beyond the
// entry, and then decodes what is behind the entry once more: each such level
// doubles the time. The time of deep JSON grows with the square of the depth.
//
// A check decodes no object. YAML is converted to JSON for it, once more than for
// the decoder.
package nesting

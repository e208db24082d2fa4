// Package nesting refuses encoded objects that would cost more to decode than a
// request may.
//
// Upstream's decoders call themselves for each level. That of protobuf has no
// limit: a deep schema overflows the stack, which ends the process, and nothing
// can recover from that. It also lets a key or a value of a map reach beyond its
// entry, and then decodes what is behind the entry once more: so each entry of a map
// of texts can hold the whole rest of the object, and each level of schemas doubles
// the time. The time of deep JSON grows with the square of the depth.
//
// A check decodes no object. YAML is converted to JSON for it, once more than for
// the decoder.
package nesting

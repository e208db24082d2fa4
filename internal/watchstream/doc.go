// Package watchstream is the format of a watch of many kinds of one tenant in
// one response. A host of control planes serves it to the platform alone, and
// the syncer reads it: one stream and one goroutine for a tenant, instead of
// some for each kind.
//
// The request names the kinds ([Kind]). The response is a sequence of frames.
// For each kind, [Begin] is followed by all objects, as [Put] or [Same], and
// [Listed]; then come changes, as [Put] and [Gone]. [Begin] may come again: a
// new list replaces the earlier one.
package watchstream

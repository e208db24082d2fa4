package quota

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits limits what one control plane stores. Zero means no limit.
type Limits struct {
	// Bytes limits the sum of the sizes of all records, keys included.
	Bytes int64
	// Objects limits the number of records.
	Objects int64
	// WritesPerSecond and WriteBytesPerSecond limit the pace of writes; a burst
	// may have WriteBurst times as much. Each write takes a place in etcd's
	// log, and etcd keeps overwritten records until they are compacted.
	WritesPerSecond     int64
	WriteBytesPerSecond int64
}

const (
	// WriteBurst is the number of seconds of writes that may come at once.
	WriteBurst = 10
	// reserveDivisor divides a limit to get the reserve, by which updates of a
	// control plane's own controllers may exceed it.
	reserveDivisor = 8
)

// Purpose is the purpose of a write.
type Purpose string

const (
	// Ordinary is a write on behalf of a client.
	Ordinary Purpose = ""
	// Upkeep is an update by one of the control plane's controllers. It may use
	// the reserve.
	Upkeep Purpose = "upkeep"
	// Vital is part of a deletion, or creates an object that every cluster has.
	// It is not limited: deletions are limited by the number of objects, and
	// the others by the control plane's code.
	Vital Purpose = "vital"
)

// purposeHeader is the gRPC metadata with the purpose of a write. No client of
// a control plane can reach etcd.
const purposeHeader = "vc-write-purpose"

// WithPurpose returns a context that sends etcd the purpose of a write.
func WithPurpose(ctx context.Context, purpose Purpose) context.Context {
	if purpose == Ordinary {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, purposeHeader, string(purpose))
}

func purposeOf(headers metadata.MD) Purpose {
	values := headers.Get(purposeHeader)
	if len(values) != 1 {
		return Ordinary
	}
	switch purpose := Purpose(values[0]); purpose {
	case Upkeep, Vital:
		return purpose
	default:
		return Ordinary
	}
}

// Usage is how much a control plane stores.
type Usage struct{ Bytes, Objects int64 }

// check returns an error if a change exceeds a limit.
func (l Limits) check(used, change Usage, purpose Purpose) error {
	if purpose == Vital {
		return nil
	}
	// The reserve is subtracted from what is used: added to a limit, it could
	// overflow.
	counted := Usage{Bytes: used.Bytes + change.Bytes, Objects: used.Objects + change.Objects}
	if purpose == Upkeep {
		counted.Bytes -= l.Bytes / reserveDivisor
		counted.Objects -= l.Objects / reserveDivisor
	}
	switch {
	case l.Bytes > 0 && change.Bytes > 0 && counted.Bytes > l.Bytes:
		return fmt.Errorf("the storage of this cluster is limited to %s, of which %s are used, and this write needs %s more: "+
			"delete objects, or ask the platform's administrator for a higher limit", size(l.Bytes), size(used.Bytes), size(change.Bytes))
	case l.Objects > 0 && change.Objects > 0 && counted.Objects > l.Objects:
		return fmt.Errorf("this cluster is limited to %d objects of all kinds, and has %d: "+
			"delete objects, or ask the platform's administrator for a higher limit", l.Objects, used.Objects)
	}
	return nil
}

// FormatBytes formats a number of bytes for people, rounded down.
func FormatBytes(bytes int64) string { return size(bytes) }

// size formats a number of bytes for people.
func size(bytes int64) string {
	const kibi = 1024
	switch {
	case bytes >= 10*kibi*kibi:
		bytes -= bytes % (kibi * kibi)
	case bytes >= 10*kibi:
		bytes -= bytes % kibi
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

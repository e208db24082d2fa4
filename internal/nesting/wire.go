package nesting

// Wire types of protobuf's encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireGroup   = 3 // of an older protobuf: no client of Kubernetes writes it, and the decoder skips it with all that is in it
	wireFixed32 = 5
)

// readTag reads the number and the wire type of a field. The decoder cuts numbers
// off at 32 bits.
func readTag(data []byte) (number int32, wire int, rest []byte, ok bool) {
	tag, rest, ok := readVarint(data)
	return int32(tag >> 3), int(tag & 7), rest, ok //nolint:gosec // as the decoder does
}

// readBytes reads a length, and as many bytes.
func readBytes(data []byte) (value, rest []byte, ok bool) {
	length, rest, ok := readVarint(data)
	if !ok || length > uint64(len(rest)) {
		return nil, nil, false
	}
	return rest[:length], rest[length:], true
}

// readVarint reads a number as the decoder does: of ten bytes at most, of which
// bits beyond 64 are dropped.
func readVarint(data []byte) (value uint64, rest []byte, ok bool) {
	const most = 10
	for i, b := range data[:min(len(data), most)] {
		value |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return value, data[i+1:], true
		}
	}
	return 0, nil, false
}

// readFields reads the fields of a message from the first to a last one, and skips
// others. All are texts or messages: the decoder does not look at wire types.
func readFields(message []byte, last int32, read func(number int32, value []byte) error) error {
	for len(message) > 0 {
		number, wire, rest, ok := readTag(message)
		if !ok {
			return malformed()
		}
		if number < 1 || number > last {
			if message, ok = skip(wire, rest); !ok {
				return malformed()
			}
			continue
		}
		value, rest, ok := readBytes(rest)
		if !ok {
			return malformed()
		}
		if err := read(number, value); err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// skip skips the value of a field.
func skip(wire int, data []byte) (rest []byte, ok bool) {
	var length int
	switch wire {
	case wireVarint:
		_, rest, ok = readVarint(data)
		return rest, ok
	case wireBytes:
		_, rest, ok = readBytes(data)
		return rest, ok
	case wireFixed64:
		length = 8
	case wireFixed32:
		length = 4
	default:
		return nil, false
	}
	if length > len(data) {
		return nil, false
	}
	return data[length:], true
}

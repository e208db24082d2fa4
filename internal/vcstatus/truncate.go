package vcstatus

import "strings"

// Truncate returns the beginning of a message, of at most that many bytes, in
// valid UTF-8.
func Truncate(message string, most int) string {
	return strings.ToValidUTF8(message[:min(len(message), most)], "")
}

package discovered

// Kept returns how many different APIs are kept.
func Kept(s *Shared) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}

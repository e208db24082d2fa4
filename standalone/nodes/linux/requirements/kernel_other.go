//go:build !linux

package requirements

func writable(string) bool { return false }

func checkNamespaces() error { return errNotLinux }

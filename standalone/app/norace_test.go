//go:build !race

package app

import "testing"

func skipWithRaceDetector(t *testing.T) { t.Helper() }

package crd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSamples: what people copy is valid.
func TestSamples(t *testing.T) {
	files, err := filepath.Glob("../samples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d samples found: %v", len(files), err)
	}
	checkers := map[string]*checker{
		"VirtualCluster": newChecker(t, "virtualclusters"),
		"ClusterVersion": newChecker(t, "clusterversions"),
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for document := range strings.SplitSeq(string(data), "\n---\n") {
				for kind, check := range checkers {
					if strings.Contains(document, "\nkind: "+kind+"\n") {
						expect(t, check.validate(check.read(t, document), nil), "")
					}
				}
			}
		})
	}
}

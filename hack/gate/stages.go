package main

// step is a target of the Makefile.
type step struct {
	target string
	// needs is a target that fails, and says why, where this one cannot run. What it
	// compiles is built by an earlier step.
	needs string
}

// canRun says why this machine cannot run a real node.
const canRun = "node-can-run"

// stage is steps that do not need each other.
type stage struct {
	name  string
	steps []step
}

// gate is what every change has to pass. What takes seconds comes first.
func gate() []stage {
	return []stage{
		{"checks", targets("lint-words", "lint-format", "lint-modules", "lint-code", "lint-generated")},
		{"build", targets("build", "operators", "programs", "node-requirements")},
		{"tests", append(targets("test-unit", "test-standalone", "test-dns", "test-chart", "test-release", "test-plugins", "test-capi",
			"test-integration", "test-escapes"), step{target: "e2e-smoke", needs: canRun})},
	}
}

// slow is what only some changes have to pass.
func slow() stage {
	return stage{"slow", append(targets("test-long", "bench-smoke"),
		step{target: "e2e", needs: canRun}, step{target: "conformance-smoke", needs: canRun})}
}

func targets(names ...string) []step {
	steps := make([]step, len(names))
	for i, name := range names {
		steps[i].target = name
	}
	return steps
}

package fairqueue

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the transcripts in testdata")

// TestTranscripts runs the commands of testdata/*.txt and compares their
// output, which is indented below each. testdata/README.md describes the
// commands.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runTranscript(t, file) })
		})
	}
}

func runTranscript(t *testing.T, file string) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{Queue: New(tenantOf, Options{})}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		got.WriteString(line)
		if out := s.run(t, strings.Fields(line)); out != "" {
			fmt.Fprintf(&got, "  %s\n", out)
		}
	}
	s.ShutDown()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" && !*rewrite {
		t.Errorf("run with -rewrite if the change is meant (-file +run):\n%s", diff)
	}
}

// script is a queue with a command line.
type script struct {
	*Queue[string]
}

// run runs a command and returns its output.
func (s *script) run(t *testing.T, words []string) string {
	t.Helper()
	if len(words) == 0 || words[0] == "#" {
		return ""
	}
	verb, args := words[0], words[1:]
	if each, ok := map[string]func(string){
		"pause": s.Pause, "resume": s.Resume, "drop": s.Drop,
		"done": s.Done, "forget": s.Forget, "retry": s.AddRateLimited,
	}[verb]; ok {
		for _, arg := range args {
			each(arg)
		}
		return ""
	}
	switch verb {
	case "limit":
		s.Queue = New(tenantOf, Options{Cap: number(t, args[0])})
	case "workers":
		s.Queue = New(tenantOf, Options{Cap: number(t, args[0]), Workers: number(t, args[1]), SlowWorkers: number(t, args[2])})
	case "slow", "fast":
		s.SetSlow(args[0], verb == "slow")
	case "weight":
		s.SetWeight(args[0], int32(number(t, args[1])))
	case "add":
		s.add(t, args)
	case "get", "take":
		return s.hand(number(t, args[0]), verb == "take")
	case "charge":
		s.Charge(args[0], number(t, args[1]))
	case "wait":
		time.Sleep(duration(t, args[0]))
		synctest.Wait()
	case "show":
		return fmt.Sprintf("due %d, in flight %d, failures %d",
			s.LaneLen(tenantOf(args[0])), s.InFlight(tenantOf(args[0])), s.NumRequeues(args[0]))
	default:
		t.Fatalf("unknown command %q", verb)
	}
	return ""
}

// add adds keys with the options before them, as in after=1s.
func (s *script) add(t *testing.T, args []string) {
	t.Helper()
	var o priorityqueue.AddOpts
	for _, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "priority":
			o.Priority = new(number(t, value))
		case "after":
			o.After = duration(t, value)
		case "retry":
			o.RateLimited = true
		default:
			s.AddWithOpts(o, arg)
		}
	}
}

// hand gets up to n keys, and finishes them if done is set.
func (s *script) hand(n int, done bool) string {
	var keys []string
	for ; n > 0 && s.available(); n-- {
		key, priority, _ := s.GetWithPriority()
		if done {
			s.Done(key)
		}
		if priority != 0 {
			key = fmt.Sprintf("%s(%+d)", key, priority)
		}
		keys = append(keys, key)
	}
	if n > 0 {
		keys = append(keys, "-")
	}
	return strings.Join(keys, " ")
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

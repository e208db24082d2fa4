package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestChoosePort(t *testing.T) {
	for name, test := range map[string]struct{ asked, remembered, want int }{
		"nothing said, first start":  {unsetPort, 0, defaultPort},
		"nothing said, second start": {unsetPort, 4711, 4711},
		"a free one, first start":    {0, 0, 0},
		"a free one, second start":   {0, 4711, 4711},
		"one named, first start":     {8443, 0, 8443},
		"another one named":          {8443, 4711, 8443},
	} {
		t.Run(name, func(t *testing.T) {
			opts := Options{Port: test.asked}
			if got := opts.choosePort(test.remembered); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"defaults":           {func(*Options) {}, ""},
		"no nodes":           {func(o *Options) { o.Nodes.Simulated = 0 }, ""},
		"no directory":       {func(o *Options) { o.DataDir = "" }, "--data-dir"},
		"a name to listen":   {func(o *Options) { o.Listen = "localhost" }, "--listen"},
		"a negative port":    {func(o *Options) { o.Port = -7 }, "--port"},
		"the syncer's flags": {func(o *Options) { o.SyncerOptions.Workers = 0 }, "--workers"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := DefaultOptions()
			opts.DataDir = "somewhere"
			test.change(&opts)
			err := opts.Validate()
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestNodes(t *testing.T) {
	for value, want := range map[string]Nodes{"0": {}, "7": {Simulated: 7}, "real": {Real: true}} {
		nodes := Nodes{Simulated: 3}
		if err := nodes.Set(value); err != nil || nodes != want || nodes.String() != value {
			t.Errorf("%s is taken for %+v, which is written %s: %v", value, nodes, &nodes, err)
		}
	}
	for _, value := range []string{"", "-1", "many", "1048576", "Real"} {
		nodes := Nodes{Simulated: 3}
		if err := nodes.Set(value); err == nil || nodes != (Nodes{Simulated: 3}) {
			t.Errorf("%q is taken for %+v: %v", value, nodes, err)
		}
	}
}

func TestFlagsOfTheSyncer(t *testing.T) {
	up := newUpCommand()
	for _, flag := range []string{"workers", "tenant-cap", "timeout", "metrics-bind-address", "syncer", "manager"} {
		if up.Flags().Lookup(flag) == nil {
			t.Errorf("--%s is missing", flag)
		}
	}
	if up.Flags().Lookup("leader-elect") != nil {
		t.Error("--leader-elect means nothing in one process")
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(errors.Join(errors.New("one"), errors.New("two"))); got != "one; two" {
		t.Errorf("got %q", got)
	}
}

func TestExitWithHint(t *testing.T) {
	var terminal bytes.Buffer
	code := 0
	exitWithHint("/some/log", &terminal, func(c int) { code = c })(255)
	if code != 1 || !strings.Contains(terminal.String(), "/some/log") {
		t.Errorf("exit %d, said %q", code, &terminal)
	}
}

func TestAdvice(t *testing.T) {
	if text := advice("/d", "i:1", true); strings.Contains(text, "no kubectl") ||
		!strings.Contains(text, "cd /d") || !strings.Contains(text, "--image=i:1\n") {
		t.Error(text)
	}
	if text := advice("/d", "i:1", false); !strings.Contains(text, "no kubectl") {
		t.Error(text)
	}
}

func TestCrew(t *testing.T) {
	broken := errors.New("broken")
	untilDone := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for name, test := range map[string]struct {
		member func(context.Context) error
		want   string
	}{
		"told to stop":   {untilDone, ""},
		"one fails":      {func(context.Context) error { return broken }, "it failed: broken"},
		"one just ends":  {func(context.Context) error { return nil }, "it ended by itself"},
		"fails stopping": {func(ctx context.Context) error { <-ctx.Done(); return broken }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrew(t.Context())
			c.run("other", untilDone)
			c.run("it", test.member)
			if test.want != "" {
				<-c.ctx.Done()
			}
			stopping, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.stop(stopping); err != nil {
				t.Fatal(err)
			}
			err := failure(c.ctx)
			if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestCrewThatDoesNotStop(t *testing.T) {
	c := newCrew(t.Context())
	release := make(chan struct{})
	c.run("it", func(context.Context) error { <-release; return nil })
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.stop(impatient); err == nil {
		t.Error("it did not wait, and did not say so")
	}
	close(release)
	c.work.Wait()
}

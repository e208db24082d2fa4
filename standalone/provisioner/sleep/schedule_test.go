package sleep

import (
	"strings"
	"testing"
	"time"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

func TestSchedulesThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		spec tenancyv1alpha1.SleepSchedule
		want string
	}{
		"never":              {tenancyv1alpha1.SleepSchedule{Asleep: "0 0 31 2 *"}, `asleep "0 0 31 2 *" never comes`},
		"never awake":        {tenancyv1alpha1.SleepSchedule{Asleep: "0 0 * * *", Awake: "0 0 30 2 *"}, "awake"},
		"out of range":       {tenancyv1alpha1.SleepSchedule{Asleep: "61 0 * * *"}, "not valid"},
		"words":              {tenancyv1alpha1.SleepSchedule{Asleep: "at night if it rains"}, "not valid"},
		"unknown zone":       {tenancyv1alpha1.SleepSchedule{Asleep: "0 0 * * *", TimeZone: "Mars/Olympus"}, `"Mars/Olympus" is not known`},
		"the machine's zone": {tenancyv1alpha1.SleepSchedule{Asleep: "0 0 * * *", TimeZone: "Local"}, `"Local" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseSchedule(&tc.spec, now); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestTimesOfASchedule(t *testing.T) {
	none := schedule(t, nil)
	if !none.nextAsleep(now).IsZero() || !none.nextAwake(now).IsZero() || !none.lastAsleep(time.Time{}, now).IsZero() {
		t.Error("a schedule without times has some")
	}
	week := schedule(t, &tenancyv1alpha1.SleepSchedule{Asleep: "0 20 * * 5", Awake: "0 7 * * 1", TimeZone: "Europe/Berlin"})
	friday := time.Date(2026, 3, 6, 19, 0, 0, 0, time.UTC) // 20:00 in Berlin
	if got := week.nextAsleep(now); !got.Equal(friday) {
		t.Errorf("sleeps at %s", got)
	}
	monday := time.Date(2026, 3, 9, 6, 0, 0, 0, time.UTC)
	if got := week.nextAwake(now); !got.Equal(monday) {
		t.Errorf("wakes at %s", got)
	}
	if got := week.lastAsleep(now, friday.Add(time.Hour)); !got.Equal(friday) {
		t.Errorf("slept at %s", got)
	}
	if got := week.lastAsleep(now, monday.Add(time.Hour)); !got.IsZero() {
		t.Errorf("slept at %s, and woke since", got)
	}
	if got := week.lastAsleep(friday, friday.Add(time.Hour)); !got.IsZero() {
		t.Errorf("slept at %s, which is not later", got)
	}
	if got := week.lastAwake(friday, friday.Add(time.Hour)); !got.IsZero() {
		t.Errorf("woke at %s", got)
	}
}

// TestLast: the last time is found for dense and for rare schedules, and with
// changes to daylight saving time.
func TestLast(t *testing.T) {
	for expression, want := range map[string]time.Time{
		"* * * * *":      now,
		"* 0-5 * * *":    time.Date(2026, 3, 2, 4, 59, 0, 0, time.UTC), // in Berlin
		"30 2 29 3 *":    time.Date(2025, 3, 29, 1, 30, 0, 0, time.UTC),
		"0 12 29 2 *":    time.Date(2024, 2, 29, 11, 0, 0, 0, time.UTC),
		"0 12 1 3 *":     time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC),
		"0 0,12 * * 0,1": time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC),
	} {
		s := schedule(t, &tenancyv1alpha1.SleepSchedule{Asleep: expression, TimeZone: "Europe/Berlin"})
		if got := s.lastAsleep(time.Time{}, now); !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", expression, got.UTC(), want)
		}
	}
}

package sleep

import (
	"fmt"
	"time"
	_ "time/tzdata" // the time zones of schedules, where the machine has none

	"github.com/robfig/cron/v3"

	tenancyv1alpha1 "github.com/virtualcluster/virtualcluster/apis/tenancy/v1alpha1"
)

// Schedule is the times at which a control plane is put to sleep and woken. The
// zero value has none.
type Schedule struct {
	asleep, awake cron.Schedule
	zone          *time.Location
}

// ParseSchedule returns the schedule of a spec, which may be nil.
func ParseSchedule(spec *tenancyv1alpha1.SleepSchedule, now time.Time) (Schedule, error) {
	if spec == nil {
		return Schedule{}, nil
	}
	zone, err := time.LoadLocation(spec.TimeZone) // empty is UTC
	if err != nil || spec.TimeZone == "Local" {
		return Schedule{}, fmt.Errorf("timeZone %q is not known: use a name of the IANA time zone database, such as Europe/Berlin", spec.TimeZone)
	}
	s := Schedule{zone: zone}
	if s.asleep, err = s.parse("asleep", spec.Asleep, now); err != nil {
		return Schedule{}, err
	}
	if s.awake, err = s.parse("awake", spec.Awake, now); err != nil {
		return Schedule{}, err
	}
	return s, nil
}

// parse returns the schedule of a field; nil if it is not set.
func (s Schedule) parse(field, expression string, now time.Time) (cron.Schedule, error) {
	if expression == "" {
		return nil, nil //nolint:nilnil // no schedule is a schedule
	}
	parsed, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not valid: %w", field, expression, err)
	}
	if parsed.Next(now.In(s.zone)).IsZero() {
		return nil, fmt.Errorf("%s %q never comes", field, expression)
	}
	return parsed, nil
}

// nextAwake returns the next time to wake; zero without any.
func (s Schedule) nextAwake(now time.Time) time.Time { return s.next(s.awake, now) }

// nextAsleep returns the next time to sleep; zero without any.
func (s Schedule) nextAsleep(now time.Time) time.Time { return s.next(s.asleep, now) }

// lastAwake returns the last time to wake after one time and until another;
// zero if there was none.
func (s Schedule) lastAwake(after, until time.Time) time.Time { return s.last(s.awake, after, until) }

// lastAsleep returns the last time to sleep after one time and until another,
// unless a time to wake followed; zero if there was none.
func (s Schedule) lastAsleep(after, until time.Time) time.Time {
	last := s.last(s.asleep, after, until)
	if last.IsZero() || !s.last(s.awake, last, until).IsZero() {
		return time.Time{}
	}
	return last
}

func (s Schedule) next(of cron.Schedule, now time.Time) time.Time {
	if of == nil {
		return time.Time{}
	}
	return of.Next(now.In(s.zone))
}

// longestGap bounds how far back the last time of a schedule is searched: a
// leap day may be eight years ago.
const longestGap = 8 * 366 * 24 * time.Hour

// last searches backwards in windows of twice the size, because a cron schedule
// only knows the next time.
func (s Schedule) last(of cron.Schedule, after, until time.Time) (last time.Time) {
	if of == nil || !after.Before(until) {
		return time.Time{}
	}
	for window := time.Minute; last.IsZero() && window < 2*longestGap; window *= 2 {
		from := until.Add(-window)
		if from.Before(after) {
			from, window = after, 2*longestGap
		}
		for next := s.next(of, from); !next.IsZero() && !next.After(until); next = s.next(of, next) {
			last = next
		}
	}
	return last
}

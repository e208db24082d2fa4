package hosted

import "time"

// firstRenewalRetry is when to renew certificates again after a failure. The time
// doubles with each further one.
const firstRenewalRetry = 15 * time.Second

// renewal is when certificates are renewed.
type renewal struct {
	*time.Timer
	interval, retry time.Duration
}

func newRenewal(interval time.Duration) *renewal {
	return &renewal{Timer: time.NewTimer(interval), interval: interval, retry: firstRenewalRetry}
}

// schedule schedules the next renewal, after one that failed or not.
func (r *renewal) schedule(err error) {
	if err == nil {
		r.retry = firstRenewalRetry
		r.Reset(r.interval)
		return
	}
	r.Reset(min(r.retry, r.interval))
	r.retry = min(2*r.retry, r.interval)
}

package inflight

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/go-logr/logr"
)

const (
	// pressureInterval is the interval between checks of the memory, and the
	// time after which one more tenant is rejected if the pressure stays.
	pressureInterval = 500 * time.Millisecond
	// highWater and lowWater are the percentages of the memory limit at which
	// pressure begins and ends.
	highWater, lowWater = 90, 75
)

// Memory is the memory that the process uses, without garbage, and its limit.
type Memory struct{ Used, Limit int64 }

// ReadMemory reads the memory of this process. The garbage collector lets the
// heap grow to the limit, so that its size says nothing: live objects do.
func ReadMemory() Memory {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) int64 {
		return int64(min(samples[i].Value.Uint64(), math.MaxInt64))
	}
	used := value(0) - value(1) - value(2) - value(3) - value(4) + value(5)
	return Memory{Used: used, Limit: debug.SetMemoryLimit(-1)} // a negative limit only reads it
}

// isPressed reports whether a process is short of memory, given whether it was.
func (m Memory) isPressed(was bool) bool {
	if m.Limit <= 0 || m.Limit == math.MaxInt64 {
		return false
	}
	water := int64(highWater)
	if was {
		water = lowWater
	}
	return m.Used >= m.Limit/percent*water
}

// Watch rejects requests while the process is short of memory, until ctx ends:
// those of the tenant whose requests take the most, then of the next one, until
// the pressure ends. It follows changes of the memory limit.
func (h *Host) Watch(ctx context.Context, read func() Memory, log logr.Logger) {
	ticker := time.NewTicker(pressureInterval)
	defer ticker.Stop()
	pressed, limit := false, int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		memory, was := read(), pressed
		pressed = memory.isPressed(was)
		if memory.Limit != limit {
			limit = memory.Limit
			h.resize(limit)
		}
		switch {
		case pressed:
			if t, bytes := h.shedLargest(); t != nil {
				log.Info("Memory is short, rejecting requests of the control plane whose requests take the most",
					"controlPlane", t.name, "requestBytes", bytes, "usedBytes", memory.Used, "limitBytes", memory.Limit)
			}
		case was:
			h.stopShedding()
			log.Info("Memory is no longer short", "usedBytes", memory.Used, "limitBytes", memory.Limit)
		}
	}
}

// shedLargest rejects requests of one more tenant, and returns it and the
// memory of its requests.
func (h *Host) shedLargest() (*Tenant, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var largest *Tenant
	for t := range h.tenants {
		// Rejecting those without large requests would release nothing.
		if t.shed || t.config.Protected || t.held <= smallRequest {
			continue
		}
		if largest == nil || t.held > largest.held {
			largest = t
		}
	}
	if largest == nil {
		return nil, 0
	}
	largest.shed = true
	return largest, largest.held
}

func (h *Host) stopShedding() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.tenants {
		t.shed = false
	}
	h.lockedWake(nil, true)
}

package measure

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// MiB is a mebibyte.
const MiB = 1 << 20

// Usage is what a process has used so far.
type Usage struct {
	// CPU is the time that it has kept a processor busy. The system counts it in hundredths of a second.
	CPU time.Duration
	// Resident is its memory that is not swapped out, in bytes.
	Resident int
}

// UsageOf asks the operating system for the usage of a process. Only Linux tells.
func UsageOf(pid int) (Usage, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("reading what process %d uses: %w", pid, err)
	}
	return Usage{CPU: time.Duration(stat.CPUTime() * float64(time.Second)), Resident: stat.ResidentMemory()}, nil
}

// Memory is the memory of this machine, and how much of it programs that are started can have, in bytes.
func Memory() (total, available int, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, fmt.Errorf("looking at the memory of this machine: %w", err)
	}
	info, err := fs.Meminfo()
	if err != nil {
		return 0, 0, fmt.Errorf("looking at the memory of this machine: %w", err)
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return 0, 0, errors.New("this machine does not tell its memory")
	}
	return int(*info.MemTotalBytes), int(*info.MemAvailableBytes), nil
}

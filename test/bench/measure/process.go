package measure

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// MiB is a mebibyte.
const MiB = 1 << 20

// Usage is the resource usage of a process so far.
type Usage struct {
	// CPU is the processor time. The kernel counts it in hundredths of a
	// second.
	CPU time.Duration
	// Resident is the resident memory in bytes that belongs to the process alone:
	// heap and stacks. Pages of files, such as those of the program, are in memory
	// as long as the kernel keeps them, whatever the process does.
	Resident int
}

// UsageOf returns the resource usage of a process. It works on Linux only.
func UsageOf(pid int) (Usage, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Usage{}, fmt.Errorf("find process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of process %d: %w", pid, err)
	}
	status, err := process.NewStatus()
	if err != nil {
		return Usage{}, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return Usage{
		CPU:      time.Duration(stat.CPUTime() * float64(time.Second)),
		Resident: int(status.RssAnon),
	}, nil
}

// Memory returns the total memory of this machine, and the part that is
// available to new processes, in bytes.
func Memory() (total, available int, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of this machine: %w", err)
	}
	info, err := fs.Meminfo()
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of this machine: %w", err)
	}
	if info.MemTotalBytes == nil || info.MemAvailableBytes == nil {
		return 0, 0, errors.New("the memory of this machine is unknown")
	}
	return int(*info.MemTotalBytes), int(*info.MemAvailableBytes), nil
}

// ReadBy returns how many bytes a process has read so far, from files and from
// connections. It works on Linux only.
func ReadBy(pid int) (int, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("find process %d: %w", pid, err)
	}
	io, err := process.IO()
	if err != nil {
		return 0, fmt.Errorf("read the I/O of process %d: %w", pid, err)
	}
	return int(io.RChar), nil
}

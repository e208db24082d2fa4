package measure

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func TestUsageOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	before, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if before.Resident < MiB/4 { // the kernel adds what a CPU has counted a few pages late
		t.Errorf("the test uses %d bytes, which is impossible", before.Resident)
	}
	busy := make([]byte, 64*MiB)
	after := before
	for began := time.Now(); after.CPU <= before.CPU && time.Since(began) < time.Minute; {
		for i := range busy {
			busy[i]++
		}
		if after, err = UsageOf(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.KeepAlive(busy)
	if after.CPU <= before.CPU || after.Resident < before.Resident+32*MiB {
		t.Errorf("%+v, then %+v after work with 64 MiB", before, after)
	}
	if _, err := UsageOf(0); err == nil {
		t.Error("found a process 0")
	}
}

func TestMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	total, available, err := Memory()
	if err != nil {
		t.Fatal(err)
	}
	if available <= 0 || available > total {
		t.Errorf("%d of %d bytes are available", available, total)
	}
}

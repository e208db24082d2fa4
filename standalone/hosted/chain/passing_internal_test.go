package chain

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// counted is a part that counts how often it was created and ended.
func counted() (part *passing[int], created, ended *atomic.Int32) {
	created, ended = &atomic.Int32{}, &atomic.Int32{}
	return &passing[int]{
		create:    func() (int, error) { return int(created.Add(1)), nil },
		end:       func(int) { ended.Add(1) }, // from a timer
		lingering: time.Minute,
	}, created, ended
}

func TestPassingEndsUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		part, created, ended := counted()
		_, first, err := part.use()
		g.Expect(err).NotTo(HaveOccurred())
		_, second, err := part.use()
		g.Expect(err).NotTo(HaveOccurred())
		first()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		g.Expect(ended.Load()).To(BeZero()) // in use
		second()
		time.Sleep(50 * time.Second)
		_, third, err := part.use()
		g.Expect(err).NotTo(HaveOccurred())
		third()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		g.Expect(ended.Load()).To(BeZero()) // used meanwhile
		time.Sleep(20 * time.Second)
		synctest.Wait()
		g.Expect(created.Load()).To(BeEquivalentTo(1))
		g.Expect(ended.Load()).To(BeEquivalentTo(1))
		again, release, err := part.use()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(again).To(Equal(2))
		release()
		part.close()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		g.Expect(ended.Load()).To(BeEquivalentTo(2))
	})
}

func TestPassingCloses(t *testing.T) {
	g := NewWithT(t)
	part, created, ended := counted()
	part.close()
	_, _, err := part.use()
	g.Expect(err).To(HaveOccurred())
	g.Expect(created.Load() + ended.Load()).To(BeZero())

	part, _, ended = counted()
	_, release, err := part.use()
	g.Expect(err).NotTo(HaveOccurred())
	part.close()
	g.Expect(ended.Load()).To(BeEquivalentTo(1))
	release()
	g.Expect(ended.Load()).To(BeEquivalentTo(1))
}

func TestPassingRepeatsFailure(t *testing.T) {
	g := NewWithT(t)
	part, _, _ := counted()
	create := part.create
	part.create = func() (int, error) { return 0, errors.New("not yet") }
	_, _, err := part.use()
	g.Expect(err).To(MatchError("not yet"))
	part.create = create
	_, release, err := part.use()
	g.Expect(err).NotTo(HaveOccurred())
	release()
	part.close()
}

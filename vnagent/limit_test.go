package vnagent

import "testing"

func TestLimit(t *testing.T) {
	l := newLimit(2)
	first, ok := l.take("red")
	_, ok2 := l.take("red")
	if _, ok3 := l.take("red"); !ok || !ok2 || ok3 {
		t.Fatal("red may have two, and not three")
	}
	if _, ok := l.take("blue"); !ok {
		t.Error("blue has to do without what red has")
	}
	first()
	again, ok := l.take("red")
	if !ok {
		t.Fatal("a released slot is gone")
	}
	again()
}

func TestLimitForgets(t *testing.T) {
	l := newLimit(1)
	giveBack, _ := l.take("red")
	giveBack()
	if len(l.have) != 0 {
		t.Errorf("still there: %v", l.have)
	}
}

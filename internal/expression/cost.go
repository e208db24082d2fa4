package expression

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// BytesPerStep is how many bytes of a text cost as much as one step.
const BytesPerStep = 10

// meter estimates the cost of a call as the size of its arguments and its
// result. cel-go itself counts the elements of a list but not their content,
// and few of its functions on text.
type meter struct{}

// CallCost is what a call cost, or nil where cel-go knows it.
func (meter) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	switch function {
	case overloads.Size, overloads.TypeConvertDyn, overloads.TypeConvertType, "value", "hasValue", "first", "last":
		return nil
	case operators.In:
		if _, isMap := args[1].(traits.Mapper); isMap {
			return nil
		}
	}
	cost := Weigh(maxCost, append(slices.Clone(args), result)...) + 1
	cost += price(function, args)
	return &cost
}

// ownTrackers are the functions whose cost their library counts by itself, by
// the elements of lists alone.
var ownTrackers = []string{"list_sets_contains_list", "list_sets_intersects_list", "list_sets_equivalent_list"}

// trackers leave the counting to the meter.
func trackers() []interpreter.CostTrackerOption {
	options := make([]interpreter.CostTrackerOption, 0, len(ownTrackers))
	for _, overload := range ownTrackers {
		options = append(options, interpreter.OverloadCostTracker(overload, func([]ref.Val, ref.Val) *uint64 { return nil }))
	}
	return options
}

// price is what a call costs beside the weight of its arguments and its result.
// It is known before the call.
func price(function string, args []ref.Val) uint64 {
	switch function {
	case overloads.Matches:
		return costOfMatch(args[0], args[1])
	case distinct:
		return product([]ref.Val{args[0], args[0]})
	case numbers:
		n, _ := args[0].(types.Int)
		return uint64(max(n, 0))
	}
	if slices.Contains(priced, function) {
		return product(args)
	}
	return 0
}

// repetition is a counted repetition in a regular expression.
var repetition = regexp.MustCompile(`\{(\d*)(?:,(\d*))?\}`)

// maxRepetitions is the most that the regular expressions of Go repeat
// anything.
const maxRepetitions = 1000

// costOfMatch is what it costs to match a text with a pattern. A pattern is as
// long as what it repeats.
func costOfMatch(text, pattern ref.Val) uint64 {
	written, _ := pattern.(types.String)
	times := 1
	for _, counts := range repetition.FindAllStringSubmatch(string(written), -1) {
		for _, count := range counts[1:] {
			n, _ := strconv.Atoi(count)
			times = min(times*max(n, 1), maxRepetitions)
		}
	}
	return product([]ref.Val{text, pattern}) * uint64(times)
}

// product is what a call costs whose work grows with the product of its
// arguments. It stops counting above the limit.
func product(args []ref.Val) uint64 {
	n := uint64(1)
	for _, arg := range args {
		switch arg := arg.(type) {
		case types.String:
			n *= uint64(max(len(arg), 1))
		default:
			n *= Weigh(maxCost, arg) + 1
		}
		if n > maxCost*stepsOfProduct {
			break
		}
	}
	return n / stepsOfProduct
}

// stepsOfProduct is how many steps of such a function cost as much as one of
// another.
const stepsOfProduct = 40

// Weigh is how many steps it takes to look at all of some values. It stops
// counting above the limit.
func Weigh(limit uint64, values ...ref.Val) uint64 {
	s := scale{limit: limit * BytesPerStep}
	for _, value := range values {
		s.put(value)
	}
	if s.full() {
		return limit + 1
	}
	return s.weight / BytesPerStep
}

// scale weighs values, up to a limit.
type scale struct{ weight, limit uint64 }

func (s *scale) full() bool { return s.weight > s.limit }

// put puts a value of an expression, or of an object in JSON form, on the
// scale.
func (s *scale) put(value any) {
	s.weight += BytesPerStep
	if s.full() {
		return
	}
	switch value := value.(type) {
	case string:
		s.weight += uint64(len(value))
	case types.String:
		s.weight += uint64(len(value))
	case types.Bytes:
		s.weight += uint64(len(value))
	case map[string]any:
		s.putObject(value)
	case []any:
		s.putArray(value)
	case *types.Optional:
		if value.HasValue() {
			s.put(value.GetValue())
		}
	case traits.MutableLister, traits.MutableMapper:
		// The elements that a loop collects are weighed when they are added.
	case traits.Mapper:
		s.putMap(value)
	case traits.Lister:
		s.putList(value)
	}
}

func (s *scale) putObject(object map[string]any) {
	for key, value := range object {
		s.weight += uint64(len(key))
		s.put(value)
		if s.full() {
			return
		}
	}
}

func (s *scale) putArray(array []any) {
	for _, value := range array {
		s.put(value)
		if s.full() {
			return
		}
	}
}

func (s *scale) putMap(m traits.Mapper) {
	if object, isJSON := m.Value().(map[string]any); isJSON {
		s.putObject(object)
		return
	}
	for it := m.Iterator(); !s.full() && it.HasNext() == types.True; {
		key := it.Next()
		s.put(key)
		s.put(m.Get(key))
	}
}

func (s *scale) putList(l traits.Lister) {
	if array, isJSON := l.Value().([]any); isJSON {
		s.putArray(array)
		return
	}
	for it := l.Iterator(); !s.full() && it.HasNext() == types.True; {
		s.put(it.Next())
	}
}

package patch

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/virtualcluster/virtualcluster/internal/expression"
)

// maxValue is the maximum weight of a value, in steps. No Kubernetes object is
// larger.
const maxValue = 3 << 20 / expression.BytesPerStep

// toJSON returns the JSON form of an expression's value. They share no memory.
func toJSON(value ref.Val) (any, error) {
	if expression.Weigh(maxValue, value) > maxValue {
		return nil, errors.New("the value is too large")
	}
	return convert(value)
}

func convert(value ref.Val) (any, error) {
	switch value := value.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(value), nil
	case types.Int:
		return int64(value), nil
	case types.Uint:
		if value > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too large", value)
		}
		return int64(value), nil
	case types.Double:
		if f := float64(value); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v has no JSON form", f)
		}
		return float64(value), nil
	case types.String:
		return string(value), nil
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(value), nil
	case types.Timestamp, types.Duration:
		return convert(value.ConvertToType(types.StringType))
	case *types.Optional:
		if !value.HasValue() {
			return nil, nil
		}
		return convert(value.GetValue())
	case traits.Mapper:
		return convertMap(value)
	case traits.Lister:
		return convertList(value)
	}
	return nil, fmt.Errorf("a %s has no JSON form", value.Type().TypeName())
}

func convertMap(m traits.Mapper) (any, error) {
	object := map[string]any{}
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, isText := key.(types.String)
		if !isText {
			return nil, fmt.Errorf("a key of a map must be a string, and one is %s", key.Type().TypeName())
		}
		value, err := convert(m.Get(key))
		if err != nil {
			return nil, err
		}
		object[string(name)] = value
	}
	return object, nil
}

func convertList(l traits.Lister) (any, error) {
	array := []any{}
	for it := l.Iterator(); it.HasNext() == types.True; {
		value, err := convert(it.Next())
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	return array, nil
}

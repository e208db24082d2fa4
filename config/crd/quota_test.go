package crd

import (
	"fmt"
	"testing"
)

// TestQuota: what makes no sense is refused when it is written.
func TestQuota(t *testing.T) {
	const (
		negative = "in body should match"
		whole    = "a limit of a number of objects must be a whole number"
		unknown  = "a resource is not known"
	)
	cases := map[string]struct{ quota, want string }{
		"Empty":            {`{}`, ""},
		"Numbers":          {`{hard: {pods: 10, services: 0, "count/configmaps": "1k"}}`, ""},
		"Compute":          {`{hard: {cpu: "1", requests.cpu: 1500m, limits.memory: 1Gi, requests.ephemeral-storage: 1e3}}`, ""},
		"Extended":         {`{hard: {requests.nvidia.com/gpu: 2, hugepages-2Mi: 1Gi, requests.hugepages-1Gi: 2Gi}}`, ""},
		"Storage":          {`{hard: {requests.storage: 1Ti, fast.storageclass.storage.k8s.io/requests.storage: 1Gi, fast.ssd.storageclass.storage.k8s.io/persistentvolumeclaims: 3}}`, ""},
		"Most":             {`{hard: ` + limits(64) + `}`, ""},
		"TooMany":          {`{hard: ` + limits(65) + `}`, "must have at most 64"},
		"Negative":         {`{hard: {pods: -1}}`, whole},
		"NegativeText":     {`{hard: {requests.cpu: -500m}}`, negative},
		"NoQuantity":       {`{hard: {requests.cpu: much}}`, "requests.cpu"},
		"TooLong":          {`{hard: {pods: "1000000000000000000000000"}}`, "Too long"},
		"NoUnit":           {`{hard: {requests.memory: 1GB}}`, "requests.memory"},
		"HalfAPod":         {`{hard: {pods: 500m}}`, whole},
		"HalfALoadBalance": {`{hard: {services.loadbalancers: "1.5"}}`, whole},
		"Unknown":          {`{hard: {gpus: 1}}`, unknown},
		"UnknownCount":     {`{hard: {"count/deployments.apps": 1}}`, unknown},
		"ExtendedLimit":    {`{hard: {limits.nvidia.com/gpu: 1}}`, unknown},
		"ExtendedBare":     {`{hard: {nvidia.com/gpu: 1}}`, unknown},
		"Class":            {`{priorityClasses: [{name: high, hard: {pods: 1, requests.cpu: 500m}}]}`, ""},
		"ClassTwice":       {`{priorityClasses: [{name: high, hard: {pods: 1}}, {name: high, hard: {pods: 2}}]}`, "Duplicate value"},
		"ClassNegative":    {`{priorityClasses: [{name: high, hard: {pods: -1}}]}`, whole},
		"ClassHalf":        {`{priorityClasses: [{name: high, hard: {pods: 500m}}]}`, whole},
		"ClassOfNoPods":    {`{priorityClasses: [{name: high, hard: {services: 1}}]}`, "a resource is not one of pods"},
		"ClassEmpty":       {`{priorityClasses: [{name: high, hard: {}}]}`, "should have at least 1 properties"},
		"ClassNoName":      {`{priorityClasses: [{hard: {pods: 1}}]}`, "name: Required value"},
		"Rule":             {`{rules: [{name: a, kinds: [Pod, Service], expression: "true", message: not so}]}`, ""},
		"RuleTwice":        {`{rules: [{name: a, kinds: [Pod], expression: "true", message: not so}, {name: a, kinds: [Pod], expression: "true", message: not so}]}`, "Duplicate value"},
		"RuleNoName":       {`{rules: [{kinds: [Pod], expression: "true", message: not so}]}`, "name: Required value"},
		"RuleBadName":      {`{rules: [{name: A b, kinds: [Pod], expression: "true", message: not so}]}`, "name in body should match"},
		"RuleNoKinds":      {`{rules: [{name: a, kinds: [], expression: "true", message: not so}]}`, "should have at least 1 items"},
		"RuleUnknownKind":  {`{rules: [{name: a, kinds: [Node], expression: "true", message: not so}]}`, "Unsupported value"},
		"RuleEmpty":        {`{rules: [{name: a, kinds: [Pod], expression: "", message: not so}]}`, "expression"},
		"RuleNoMessage":    {`{rules: [{name: a, kinds: [Pod], expression: "true"}]}`, "message: Required value"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{quota: "+tc.quota+"}")), nil), tc.want)
		})
	}
}

// limits returns n limits in YAML.
func limits(n int) string {
	all := "{"
	for i := range n {
		all += fmt.Sprintf("requests.example.com/device%d: 1, ", i)
	}
	return all + "}"
}

package crd

import (
	"fmt"
	"testing"
)

func TestPolicy(t *testing.T) {
	const privileged = "allowHostNamespaces, allowHostPath and hostPorts need podSecurity privileged, since the other levels refuse such pods"
	ports := func(n int) string {
		return items(n, func(i int) string { return fmt.Sprintf("{min: %d, max: %d}", i+1, i+1) })
	}
	cases := map[string]struct{ policy, want string }{
		"Empty":                   {`{}`, ""},
		"Privileged":              {`{podSecurity: privileged}`, ""},
		"Baseline":                {`{podSecurity: baseline}`, ""},
		"Restricted":              {`{podSecurity: restricted}`, ""},
		"UnknownLevel":            {`{podSecurity: relaxed}`, `Unsupported value: "relaxed"`},
		"UpperCaseLevel":          {`{podSecurity: Privileged}`, `Unsupported value: "Privileged"`},
		"EmptyLevel":              {`{podSecurity: ""}`, "Unsupported value"},
		"Everything":              {`{podSecurity: privileged, allowHostNamespaces: true, allowHostPath: true, hostPorts: [{min: 1, max: 65535}], allowNodeName: true, allowSystemPriority: true, allowSystemTolerations: true}`, ""},
		"NothingByName":           {`{podSecurity: restricted, allowHostNamespaces: false, allowHostPath: false, allowNodeName: false}`, ""},
		"NothingByNameNoLevel":    {`{allowHostNamespaces: false, allowHostPath: false}`, ""},
		"WithoutNeedOfALevel":     {`{allowNodeName: true, allowSystemPriority: true, allowSystemTolerations: true}`, ""},
		"OthersAtRestricted":      {`{podSecurity: restricted, allowNodeName: true, allowSystemPriority: true}`, ""},
		"HostNamespacesNoLevel":   {`{allowHostNamespaces: true}`, privileged},
		"HostNamespacesBaseline":  {`{podSecurity: baseline, allowHostNamespaces: true}`, privileged},
		"HostPathNoLevel":         {`{allowHostPath: true}`, privileged},
		"HostPathRestricted":      {`{podSecurity: restricted, allowHostPath: true}`, privileged},
		"HostPortsNoLevel":        {`{hostPorts: [{min: 80, max: 80}]}`, privileged},
		"HostPortsBaseline":       {`{podSecurity: baseline, hostPorts: [{min: 80, max: 80}]}`, privileged},
		"HostPathPrivileged":      {`{podSecurity: privileged, allowHostPath: true}`, ""},
		"HostPortsPrivileged":     {`{podSecurity: privileged, hostPorts: [{min: 80, max: 80}, {min: 8000, max: 8999}]}`, ""},
		"NoBoolean":               {`{allowNodeName: "yes"}`, "must be of type boolean"},
		"PortsBackwards":          {`{podSecurity: privileged, hostPorts: [{min: 90, max: 80}]}`, "min must not be above max"},
		"SecondPortsBackwards":    {`{podSecurity: privileged, hostPorts: [{min: 80, max: 80}, {min: 2, max: 1}]}`, "hostPorts[1]"},
		"PortZero":                {`{podSecurity: privileged, hostPorts: [{min: 0, max: 80}]}`, "should be greater than or equal to 1"},
		"PortTooHigh":             {`{podSecurity: privileged, hostPorts: [{min: 80, max: 65536}]}`, "should be less than or equal to 65535"},
		"PortsWithoutMax":         {`{podSecurity: privileged, hostPorts: [{min: 80}]}`, "max: Required value"},
		"PortsWithoutMin":         {`{podSecurity: privileged, hostPorts: [{max: 80}]}`, "min: Required value"},
		"NoPorts":                 {`{podSecurity: privileged, hostPorts: []}`, "should have at least 1 items"},
		"MostPorts":               {`{podSecurity: privileged, hostPorts: ` + ports(16) + `}`, ""},
		"TooManyPorts":            {`{podSecurity: privileged, hostPorts: ` + ports(17) + `}`, "must have at most 16 items"},
		"PortsTwiceAreNoProblem":  {`{podSecurity: privileged, hostPorts: [{min: 80, max: 80}, {min: 80, max: 80}]}`, ""},
		"FalsePathButPorts":       {`{allowHostPath: false, hostPorts: [{min: 80, max: 80}]}`, privileged},
		"FalseNamespacesTruePath": {`{podSecurity: baseline, allowHostNamespaces: false, allowHostPath: true}`, privileged},
		"VolumeTypes":             {`{allowVolumeTypes: [nfs, iscsi, fc, cephfs, rbd, azureFile]}`, ""},
		"NoSuchVolumeType":        {`{allowVolumeTypes: [floppy]}`, `Unsupported value: "floppy"`},
		"HostPathIsNoVolumeType":  {`{allowVolumeTypes: [hostPath]}`, `Unsupported value: "hostPath"`},
		"GitRepoIsNeverAllowed":   {`{allowVolumeTypes: [gitRepo]}`, `Unsupported value: "gitRepo"`},
		"CSIIsOffered":            {`{allowVolumeTypes: [csi]}`, `Unsupported value: "csi"`},
		"Tolerations":             {`{allowTolerations: ["gpu", "example.com/*", "dedicated=red", "empty=", "*"]}`, ""},
		"EmptyToleration":         {`{allowTolerations: [""]}`, "should match"},
		"TolerationsInside":       {`{allowTolerations: ["a*b"]}`, "should match"},
		"TolerationsOfAnyValue":   {`{allowTolerations: ["a=*"]}`, "should match"},
		"SameTolerationTwice":     {`{allowTolerations: [gpu, gpu]}`, "Duplicate value"},
		"Schedulers":              {`{allowSchedulers: [volcano]}`, ""},
		"SchedulerWithoutName":    {`{allowSchedulers: [""]}`, "should be at least 1 chars long"},
		"ReclaimPolicies":         {`{allowReclaimPolicies: [Retain, Delete]}`, ""},
		"NoRecycling":             {`{allowReclaimPolicies: [Recycle]}`, `Unsupported value: "Recycle"`},
		"Hosts":                   {`{ingressHosts: ["*.red.example.com", "red.example.com", "*"]}`, ""},
		"HostWithAnAsterisk":      {`{ingressHosts: ["red.*.example.com"]}`, "should match"},
		"HostInUpperCase":         {`{ingressHosts: ["Red.example.com"]}`, "should match"},
		"NoHosts":                 {`{ingressHosts: []}`, "should have at least 1 items"},
		"Switches":                {`{allowProbeHosts: true, allowNodeProfiles: true, allowExternalNames: true, allowConversionWebhooks: true}`, ""},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", "{policy: "+tc.policy+"}")), nil), tc.want)
		})
	}
}

package crd

import "testing"

func TestSleep(t *testing.T) {
	cases := map[string]struct {
		spec string
		want string // in the error; empty if there is none
	}{
		"None":            {`{}`, ""},
		"Empty":           {`{controlPlane: {sleep: {}}}`, ""},
		"Never":           {`{controlPlane: {sleep: {afterIdleSeconds: 0}}}`, ""},
		"Shortest":        {`{controlPlane: {sleep: {afterIdleSeconds: 10}}}`, ""},
		"TooShort":        {`{controlPlane: {sleep: {afterIdleSeconds: 9}}}`, "at least 10"},
		"Negative":        {`{controlPlane: {sleep: {afterIdleSeconds: -1}}}`, "afterIdleSeconds"},
		"TooLong":         {`{controlPlane: {sleep: {afterIdleSeconds: 31536001}}}`, "afterIdleSeconds"},
		"Word":            {`{controlPlane: {sleep: {afterIdleSeconds: Never}}}`, "afterIdleSeconds"},
		"ScaleToZero":     {`{controlPlane: {sleep: {workloads: ScaleToZero}}}`, ""},
		"OtherWorkloads":  {`{controlPlane: {sleep: {workloads: Delete}}}`, "workloads"},
		"Nights":          {`{controlPlane: {sleep: {schedule: {asleep: "0 20 * * *", awake: "0 7 * * 1-5", timeZone: Europe/Berlin}}}}`, ""},
		"AsleepOnly":      {`{controlPlane: {sleep: {schedule: {asleep: "0 20 * * *"}}}}`, ""},
		"AwakeOnly":       {`{controlPlane: {sleep: {schedule: {awake: "0 20 * * *"}}}}`, ""},
		"EmptySchedule":   {`{controlPlane: {sleep: {schedule: {}}}}`, "must set asleep, awake or both"},
		"ZoneOnly":        {`{controlPlane: {sleep: {schedule: {timeZone: UTC}}}}`, "must set asleep, awake or both"},
		"FourFields":      {`{controlPlane: {sleep: {schedule: {asleep: "0 20 * *"}}}}`, "asleep"},
		"SixFields":       {`{controlPlane: {sleep: {schedule: {asleep: "0 0 20 * * *"}}}}`, "asleep"},
		"Descriptor":      {`{controlPlane: {sleep: {schedule: {asleep: "@every 1h"}}}}`, "asleep"},
		"ZoneInSchedule":  {`{controlPlane: {sleep: {schedule: {asleep: "TZ=UTC 0 20 * * *"}}}}`, "asleep"},
		"PathAsZone":      {`{controlPlane: {sleep: {schedule: {asleep: "0 20 * * *", timeZone: ../../etc/passwd}}}}`, "timeZone"},
		"Paused":          {`{paused: true}`, ""},
		"PausedExternal":  {`{paused: true, provisioner: External, external: {kubeconfigSecretName: red}}`, "provisioner Hosted"},
		"ResumedExternal": {`{paused: false, provisioner: External, external: {kubeconfigSecretName: red}}`, ""},
		"AsleepExternal": {
			`{controlPlane: {sleep: {afterIdleSeconds: 60}}, provisioner: External, external: {kubeconfigSecretName: red}}`, "provisioner Hosted",
		},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", tc.spec)), nil), tc.want)
		})
	}
}

package crd

import "testing"

func TestControlPlane(t *testing.T) {
	const external = `provisioner: External, external: {kubeconfigSecretName: red}`
	cases := map[string]struct{ spec, want string }{
		"Empty":             {`{controlPlane: {}}`, ""},
		"NoLimits":          {`{controlPlane: {limits: {}}}`, ""},
		"AllLimits":         {`{controlPlane: {limits: {storage: 256Mi, objects: 50000, expressions: 2000, writesPerSecond: 500, writeBytesPerSecond: 4Mi, concurrentReads: 50, concurrentWrites: 20, concurrentWatches: 500}}}`, ""},
		"StorageAsNumber":   {`{controlPlane: {limits: {storage: 268435456}}}`, ""},
		"StorageDecimal":    {`{controlPlane: {limits: {storage: 1.5Gi}}}`, ""},
		"StorageLeast":      {`{controlPlane: {limits: {storage: 1Mi}}}`, ""},
		"StorageTooSmall":   {`{controlPlane: {limits: {storage: 1023Ki}}}`, "storage must be 1Mi to 1Ti"},
		"StorageZero":       {`{controlPlane: {limits: {storage: 0}}}`, "storage must be 1Mi to 1Ti"},
		"StorageNegative":   {`{controlPlane: {limits: {storage: -1Gi}}}`, "storage must be 1Mi to 1Ti"},
		"StorageTooLarge":   {`{controlPlane: {limits: {storage: 2Ti}}}`, "storage must be 1Mi to 1Ti"},
		"StorageNoUnit":     {`{controlPlane: {limits: {storage: 1GB}}}`, "in body should match"},
		"ObjectsTooFew":     {`{controlPlane: {limits: {objects: 99}}}`, "greater than or equal to 100"},
		"ExpressionsTooFew": {`{controlPlane: {limits: {expressions: 99}}}`, "greater than or equal to 100"},
		"WritesNone":        {`{controlPlane: {limits: {writesPerSecond: 0}}}`, "greater than or equal to 1"},
		"WrittenTooFew":     {`{controlPlane: {limits: {writeBytesPerSecond: 255Ki}}}`, "writeBytesPerSecond must be 256Ki to 1Ti"},
		"ReadsTooFew":       {`{controlPlane: {limits: {concurrentReads: 9}}}`, "greater than or equal to 10"},
		"ReadsTooMany":      {`{controlPlane: {limits: {concurrentReads: 10001}}}`, "less than or equal to 10000"},
		"WritesTooFew":      {`{controlPlane: {limits: {concurrentWrites: 0}}}`, "greater than or equal to 10"},
		"WatchesTooFew":     {`{controlPlane: {limits: {concurrentWatches: 99}}}`, "greater than or equal to 100"},
		"Hosted":            {`{provisioner: Hosted, controlPlane: {limits: {objects: 100}}}`, ""},
		"External":          {`{` + external + `, controlPlane: {limits: {objects: 100}}}`, "controlPlane is for provisioner Hosted"},
	}
	check := newChecker(t, "virtualclusters")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, check.validate(check.read(t, virtualCluster("red", tc.spec)), nil), tc.want)
		})
	}
}

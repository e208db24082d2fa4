package expressions_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/virtualcluster/virtualcluster/standalone/hosted/expressions"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 10)
	accounts := expressions.NewAccounts()
	accounts.Add(w.account)
	w.must(w.write(policies, "a", 4))
	w.mustReject(w.write(policies, "b", 7))
	want := `
		# HELP vc_hosted_expressions How much work the expressions are that a control plane stores, in expressions of the usual length; 0 before the first write that has any.
		# TYPE vc_hosted_expressions gauge
		vc_hosted_expressions{control_plane="red"} 4
		# HELP vc_hosted_expressions_limit How much work the expressions of a control plane may be, in expressions of the usual length; 0 is no limit.
		# TYPE vc_hosted_expressions_limit gauge
		vc_hosted_expressions_limit{control_plane="red"} 10
		# HELP vc_hosted_rejected_expressions_total Writes rejected because of the limit of expressions of their control plane.
		# TYPE vc_hosted_rejected_expressions_total counter
		vc_hosted_rejected_expressions_total{control_plane="red"} 1
	`
	if err := testutil.CollectAndCompare(expressions.NewCollector(accounts), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

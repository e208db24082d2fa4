package main

import (
	"bytes"
	_ "embed" // for header and hosted
	"fmt"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// header begins the document.
//
//go:embed header.md
var header string

// hosted ends it: the metrics of the nested module, which this one cannot ask.
//
//go:embed hosted.md
var hosted string

// write adds the metrics of a program to the document.
func write(out *bytes.Buffer, program string, families []*dto.MetricFamily) {
	fmt.Fprintf(out, "\n## %s\n\n| metric | type | labels | |\n|---|---|---|---|\n", program)
	for _, f := range families {
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n",
			f.GetName(), strings.ToLower(f.GetType().String()), labels(f), strings.ReplaceAll(f.GetHelp(), "|", `\|`))
	}
}

// labels returns the names of the labels of a metric.
func labels(f *dto.MetricFamily) string {
	pairs := f.GetMetric()[0].GetLabel()
	names := make([]string, len(pairs))
	for i, l := range pairs {
		names[i] = l.GetName()
	}
	return strings.Join(names, ", ")
}

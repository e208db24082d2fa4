package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write creates a directory with the report: results.json, table.txt, and a
// file for each chart.
func (r *Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the directory for results: %w", err)
	}
	files := map[string]func(io.Writer) error{
		"results.json": r.writeJSON,
		"table.txt":    r.writeTables,
	}
	for _, s := range r.Scenarios {
		for _, c := range s.Charts {
			files[s.Name+"-"+c.Name+".svg"] = c.WriteSVG
		}
	}
	for name, write := range files {
		var content bytes.Buffer
		if err := write(&content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	return nil
}

func (r *Report) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *Report) writeTables(w io.Writer) error {
	if err := r.WriteHead(w); err != nil {
		return err
	}
	for _, s := range r.Scenarios {
		if err := s.WriteTable(w); err != nil {
			return err
		}
	}
	return nil
}

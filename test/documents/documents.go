// Package documents reads the commands and the manifests of the documents, so
// that tests run them as a reader does.
package documents

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is a fenced block of a page.
type Block struct {
	// Page is the file, below the folder of the project, and Line its line of the
	// block's fence.
	Page string
	Line int
	// Language is sh, yaml, or another that is not tested.
	Language string
	// Text is the content, without the indent of the fence.
	Text string
	// Environment is where the block works, see [Environments].
	Environment string
	// Tenants are the names of the VirtualClusters in namespace team that exist
	// before the block.
	Tenants []string
	// Context is the tenant on whose apiserver the block works; empty for the super
	// cluster.
	Context string
	// Types is the line that the reader types when the block asks.
	Types string
}

// String returns where the block is.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// IsValues reports whether the block has values of the chart: it is neither an
// object, nor a part of a VirtualCluster.
func (b Block) IsValues() bool {
	return b.Language == "yaml" && b.Environment == Cluster &&
		!strings.HasPrefix(b.Text, "spec:") && !strings.Contains("\n"+b.Text, "\napiVersion:")
}

// Read reads the blocks of all documents of a project, in the order of their
// pages.
func Read(root string) ([]Block, error) {
	pages := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := filepath.Rel(root, path)
		pages = append(pages, page)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	var all []Block
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, fmt.Errorf("read a document: %w", err)
		}
		blocks, err := parse(page, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, blocks...)
	}
	return all, nil
}

// Page is a document with those of its blocks that a test runs.
type Page struct {
	// Name is the file, below the folder of the project.
	Name   string
	Blocks []Block
}

// Pages reads the pages of a project with the commands and manifests of
// environments, in order.
func Pages(root string, environments ...string) ([]Page, error) {
	blocks, err := Read(root)
	var pages []Page
	for _, b := range blocks {
		if b.IsValues() || b.Language != "sh" && b.Language != "yaml" || !slices.Contains(environments, b.Environment) {
			continue
		}
		if len(pages) == 0 || pages[len(pages)-1].Name != b.Page {
			pages = append(pages, Page{Name: b.Page})
		}
		last := &pages[len(pages)-1]
		last.Blocks = append(last.Blocks, b)
	}
	return pages, err
}

var (
	fence     = regexp.MustCompile("^( *)```([a-z]*)$")
	directive = regexp.MustCompile(`^ *<!-- test: (.*) -->$`)
)

// parse returns the blocks of a page. A comment such as
//
//	<!-- test: environment=installation tenants=red,blue in=red -->
//
// is about the next block.
func parse(page, text string) ([]Block, error) {
	var all []Block
	next := Block{Page: page}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if m := directive.FindStringSubmatch(lines[i]); m != nil {
			if err := set(&next, m[1]); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
			}
		}
		m := fence.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		end := slices.Index(lines[i+1:], m[1]+"```")
		if end < 0 {
			return nil, fmt.Errorf("%s:%d: the block does not end", page, i+1)
		}
		next.Line, next.Language = i+1, m[2]
		for _, line := range lines[i+1 : i+1+end] {
			next.Text += strings.TrimPrefix(line, m[1]) + "\n"
		}
		all = append(all, next)
		next = Block{Page: page}
		i += end + 1
	}
	if next.Environment != "" || len(next.Tenants) > 0 || next.Context != "" || next.Types != "" {
		return nil, fmt.Errorf("%s: a comment for a test is about no block", page)
	}
	return all, nil
}

// set sets what a comment says of a block.
func set(b *Block, comment string) error {
	for setting := range strings.FieldsSeq(comment) {
		key, value, _ := strings.Cut(setting, "=")
		switch key {
		case "environment":
			b.Environment = value
		case "tenants":
			b.Tenants = strings.FieldsFunc(value, func(r rune) bool { return r == ',' })
		case "in":
			b.Context = value
		case "types":
			b.Types = value
		default:
			return fmt.Errorf("a comment for a test has environment, tenants, in and types, not %s", setting)
		}
	}
	return nil
}

package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"
)

// Sizes in pixels.
const (
	chartWidth, chartHeight    = 880, 420
	marginLeft, marginRight    = 70, 210
	marginTop, marginBottom    = 40, 55
	legendStep, legendDash     = 18, 24
	tickLength, baselineOffset = 5, 4
)

// colors can be distinguished by people with color blindness (Okabe and Ito's
// palette).
var colors = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}

// drawing is an SVG in progress.
type drawing struct {
	*bufio.Writer

	x, y axis
}

// WriteSVG writes the chart as SVG.
func (c *Chart) WriteSVG(out io.Writer) error {
	lowX, highX := c.bounds(func(p Point) float64 { return p.X })
	lowY, highY := c.bounds(func(p Point) float64 { return p.Y })
	d := &drawing{
		Writer: bufio.NewWriter(out),
		x:      newAxis(lowX, highX, marginLeft, chartWidth-marginRight, c.LogX),
		y:      newAxis(lowY, highY, chartHeight-marginBottom, marginTop, false),
	}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`, chartWidth, chartHeight)
	d.printf(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	d.text((marginLeft+chartWidth-marginRight)/2, marginTop/2, "middle", "15", c.Title)
	d.axes(c)
	for i, line := range c.Lines {
		d.line(line, colors[i%len(colors)])
		d.legend(i, line.Name, colors[i%len(colors)])
	}
	d.printf(`</svg>`)
	return d.Flush()
}

// printf writes a line. Errors are returned by the final flush.
func (d *drawing) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d, format+"\n", args...)
}

func (d *drawing) text(x, y float64, anchor, size, text string) {
	d.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%s">%s</text>`, x, y, anchor, size, html.EscapeString(text))
}

// axes draws both axes with a grid.
func (d *drawing) axes(c *Chart) {
	const left, right = marginLeft, chartWidth - marginRight
	const top, bottom = marginTop, chartHeight - marginBottom
	for _, tick := range d.x.ticks {
		x := d.x.at(tick)
		d.printf(`<path d="M%.1f %d V%d" stroke="#ddd"/>`, x, top, bottom+tickLength)
		d.text(x, bottom+4*tickLength, "middle", "11", number(tick))
	}
	for _, tick := range d.y.ticks {
		y := d.y.at(tick)
		d.printf(`<path d="M%d %.1f H%d" stroke="#ddd"/>`, left-tickLength, y, right)
		d.text(left-2*tickLength, y+baselineOffset, "end", "11", number(tick))
	}
	d.printf(`<path d="M%d %d V%d H%d" fill="none" stroke="#333"/>`, left, top, bottom, right)
	d.text((left+right)/2, chartHeight-2*tickLength, "middle", "12", c.X)
	d.printf(`<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>`, (top+bottom)/2, html.EscapeString(c.Y))
}

func (d *drawing) line(line Line, color string) {
	points := make([]string, 0, len(line.Points))
	for _, p := range line.Points {
		points = append(points, fmt.Sprintf("%.1f,%.1f", d.x.at(p.X), d.y.at(p.Y)))
	}
	d.printf(`<polyline fill="none" stroke="%s" stroke-width="1.8" points="%s"/>`, color, strings.Join(points, " "))
}

// legend draws a line's name beside the plot.
func (d *drawing) legend(i int, name, color string) {
	x, y := float64(chartWidth-marginRight+2*tickLength), float64(marginTop+legendStep/2+i*legendStep)
	d.printf(`<path d="M%.1f %.1f h%d" stroke="%s" stroke-width="3"/>`, x, y, legendDash-baselineOffset, color)
	d.text(x+legendDash, y+baselineOffset, "start", "12", name)
}

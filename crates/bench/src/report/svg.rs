//! Drawings as SVG: lines and bars. Colours are the page's, by class. Knows no experiment.

use super::scale::{Axis, short};
use crate::experiments::Scale;
use crate::results::Spread;
use std::fmt::Write;

/// A line of a drawing.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is called.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, Spread)>,
    /// Which of the page's colours it has.
    pub colour: usize,
    /// Whether it is broken, for a second language of the same server.
    pub broken: bool,
}

/// A group of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// What stands under it.
    pub name: String,
    /// Its bars: name, height, colour.
    pub bars: Vec<(String, Spread, usize)>,
}

/// What stands beside the axes.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// What the drawing shows.
    pub title: &'a str,
    /// What goes to the right.
    pub x: &'a str,
    /// What goes up.
    pub y: &'a str,
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;

/// The part of a drawing between its axes.
const INNER: (f64, f64) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);

fn open(labels: Labels<'_>, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\
         <text class=\"title\" x=\"{LEFT}\" y=\"16\">{title}</text>\
         <text class=\"unit\" x=\"{LEFT}\" y=\"32\">{y}</text>",
        title = escape(labels.title),
        y = escape(labels.y),
    )
}

fn y_axis(y: &Axis, out: &mut String) {
    for mark in y.marks() {
        let at = TOP + INNER.1 * (1.0 - y.place(mark));
        let right = WIDTH - RIGHT;
        put(out, format_args!("<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\"/>"));
        let (x, base) = (LEFT - 6.0, at + 4.0);
        put(out, format_args!("<text class=\"mark end\" x=\"{x}\" y=\"{base:.1}\">{}</text>", short(mark)));
    }
}

/// Lines over an axis of quantities.
pub fn lines(labels: Labels<'_>, lines: &[Line], x_scale: Scale, y_scale: Scale) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = if x_scale == Scale::Log {
        Axis::around(points().map(|(x, _)| *x), x_scale)
    } else {
        Axis::around(points().map(|(x, _)| *x).chain([0.0]), x_scale)
    };
    let y = Axis::around(points().flat_map(|(_, y)| [y.min, y.max]), y_scale);
    let place = |at: f64, value: f64| (LEFT + INNER.0 * x.place(at), TOP + INNER.1 * (1.0 - y.place(value)));
    let mut out = open(labels, HEIGHT + legend_height(lines.len()));
    y_axis(&y, &mut out);
    let base = HEIGHT - BOTTOM;
    for mark in x.marks() {
        let (at, _) = place(mark, 0.0);
        let (from, to, text) = (base, base + 4.0, base + 18.0);
        put(&mut out, format_args!("<line class=\"axis\" x1=\"{at:.1}\" y1=\"{from}\" x2=\"{at:.1}\" y2=\"{to}\"/>"));
        put(&mut out, format_args!("<text class=\"mark middle\" x=\"{at:.1}\" y=\"{text}\">{}</text>", short(mark)));
    }
    let (middle, under) = (LEFT + INNER.0 / 2.0, HEIGHT - 10.0);
    put(&mut out, format_args!("<text class=\"unit middle\" x=\"{middle}\" y=\"{under}\">{}</text>", escape(labels.x)));
    for line in lines {
        let broken = if line.broken { " broken" } else { "" };
        let mut path = String::new();
        for (index, (at, spread)) in line.points.iter().enumerate() {
            let (x, y) = place(*at, spread.median);
            put(&mut path, format_args!("{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" }));
            let ((_, low), (_, high)) = (place(*at, spread.min), place(*at, spread.max));
            if low - high > 1.0 {
                let class = format!("range c{}", line.colour);
                put(
                    &mut out,
                    format_args!(
                        "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\"/>"
                    ),
                );
            }
            if line.points.len() <= 40 {
                let title = format!("{}: {}", line.name, short(spread.median));
                let colour = line.colour;
                put(
                    &mut out,
                    format_args!(
                        "<circle class=\"c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{}</title></circle>",
                        escape(&title)
                    ),
                );
            }
        }
        put(&mut out, format_args!("<path class=\"line c{}{broken}\" d=\"{path}\"/>", line.colour));
    }
    let names: Vec<(&str, usize, bool)> =
        lines.iter().map(|line| (line.name.as_str(), line.colour, line.broken)).collect();
    legend(&names, &mut out);
    out + "</svg>"
}

/// Groups of bars from 0.
pub fn bars(labels: Labels<'_>, groups: &[Bars]) -> String {
    let all = || groups.iter().flat_map(|group| &group.bars);
    let y = Axis::around(all().flat_map(|(_, spread, _)| [spread.min, spread.max]), Scale::Linear);
    let mut names: Vec<(&str, usize, bool)> = Vec::new();
    for (name, _, colour) in all() {
        if !names.iter().any(|(known, ..)| known == name) {
            names.push((name, *colour, false));
        }
    }
    let mut out = open(labels, HEIGHT + legend_height(names.len()));
    y_axis(&y, &mut out);
    let slot = INNER.0 / groups.len().max(1) as f64;
    let zero = TOP + INNER.1 * (1.0 - y.place(0.0));
    for (index, group) in groups.iter().enumerate() {
        let from = LEFT + slot * index as f64 + slot * 0.1;
        let width = slot * 0.8 / group.bars.len().max(1) as f64;
        for (bar, (name, spread, colour)) in group.bars.iter().enumerate() {
            let height = |value: f64| TOP + INNER.1 * (1.0 - y.place(value));
            let (x, at) = (from + width * bar as f64, height(spread.median));
            let (top, tall) = (at.min(zero), (at - zero).abs());
            let title = format!("{name}, {}: {}", group.name, short(spread.median));
            let inner = (width - 1.5).max(1.0);
            put(
                &mut out,
                format_args!(
                    "<rect class=\"c{colour}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{inner:.1}\" height=\"{tall:.1}\"><title>{}</title></rect>",
                    escape(&title)
                ),
            );
            let (low, high, middle) = (height(spread.min), height(spread.max), x + inner / 2.0);
            if low - high > 1.0 {
                put(
                    &mut out,
                    format_args!(
                        "<line class=\"whisker\" x1=\"{middle:.1}\" y1=\"{low:.1}\" x2=\"{middle:.1}\" y2=\"{high:.1}\"/>"
                    ),
                );
            }
        }
        // Many groups have their names one below the other in turn; none sticks out.
        let half = group.name.chars().count() as f64 * CHAR_WIDTH / 2.0;
        let middle = (LEFT + slot * (index as f64 + 0.5)).min(WIDTH - half).max(half);
        let row = (index % rows(groups)) as f64;
        let under = HEIGHT - BOTTOM + 16.0 + 13.0 * row;
        put(
            &mut out,
            format_args!(
                "<text class=\"mark middle\" x=\"{middle:.1}\" y=\"{under:.1}\">{}</text>",
                escape(&group.name)
            ),
        );
    }
    legend(&names, &mut out);
    out + "</svg>"
}

/// In how many rows the groups' names fit.
fn rows(groups: &[Bars]) -> usize {
    let longest = groups.iter().map(|group| group.name.chars().count()).max().unwrap_or(0) as f64;
    let slot = INNER.0 / groups.len().max(1) as f64;
    ((longest * CHAR_WIDTH / slot).ceil() as usize).clamp(1, 3)
}

/// About what a character of a mark takes.
const CHAR_WIDTH: f64 = 6.0;
const NAMES_A_ROW: usize = 3;
const ROW_HEIGHT: f64 = 18.0;

fn legend_height(names: usize) -> f64 {
    names.div_ceil(NAMES_A_ROW) as f64 * ROW_HEIGHT
}

fn legend(names: &[(&str, usize, bool)], out: &mut String) {
    for (index, (name, colour, broken)) in names.iter().enumerate() {
        let x = LEFT + INNER.0 / NAMES_A_ROW as f64 * (index % NAMES_A_ROW) as f64;
        let y = HEIGHT + ROW_HEIGHT * (index / NAMES_A_ROW) as f64 + 4.0;
        let (end, text, base) = (x + 16.0, x + 21.0, y + 4.0);
        let broken = if *broken { " broken" } else { "" };
        put(
            out,
            format_args!(
                "<line class=\"key c{colour}{broken}\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{end:.1}\" y2=\"{y:.1}\"/>"
            ),
        );
        put(out, format_args!("<text class=\"mark\" x=\"{text:.1}\" y=\"{base:.1}\">{}</text>", escape(name)));
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text does not fail.
    let _ = out.write_fmt(text);
}

/// Text as HTML and SVG show it.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: Labels<'_> = Labels { title: "a < b", x: "x", y: "op/s" };

    fn at(median: f64) -> Spread {
        Spread { median, min: median * 0.5, max: median * 1.5 }
    }

    #[test]
    fn lines_and_their_names_are_drawn() {
        let line = |name: &str, colour| Line {
            name: name.to_owned(),
            points: vec![(1.0, at(10.0)), (10.0, at(20.0)), (100.0, at(15.0))],
            colour,
            broken: colour == 1,
        };
        let drawn = lines(LABELS, &[line("tenon", 0), line("redis & co", 1)], Scale::Log, Scale::Linear);
        assert_eq!(drawn.matches("<path").count(), 2);
        assert_eq!(drawn.matches("<circle").count(), 6);
        assert!(drawn.contains("a &lt; b") && drawn.contains("redis &amp; co") && drawn.contains("c1 broken"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    #[test]
    fn bars_stand_on_zero() {
        let group =
            Bars { name: "get".into(), bars: vec![("tenon".into(), at(10.0), 0), ("redis".into(), at(30.0), 1)] };
        let drawn = bars(LABELS, &[group.clone(), Bars { name: "set".into(), ..group }]);
        assert_eq!((drawn.matches("<rect").count(), drawn.matches("class=\"key").count()), (4, 2));
        assert!(!drawn.contains("NaN"), "{drawn}");
        assert!(bars(LABELS, &[]).ends_with("</svg>"));
    }

    #[test]
    fn long_names_stay_within_the_drawing() {
        let group = |index: u32| Bars {
            name: format!("keys 100000, value bytes {}", 10_u32.pow(index)),
            bars: vec![("tenon".into(), at(1.0), 0)],
        };
        let groups: Vec<Bars> = (0..6).map(group).collect();
        let drawn = bars(LABELS, &groups);
        let mut found = 0;
        for text in drawn.split("class=\"mark middle\" x=\"").skip(1) {
            let (x, rest) = text.split_once('"').expect("a place");
            let name = rest.split(['>', '<']).nth(1).expect("a name");
            let (x, half): (f64, f64) = (x.parse().expect("a number"), name.len() as f64 * CHAR_WIDTH / 2.0);
            assert!(x - half >= -0.1 && x + half <= WIDTH + 0.1, "{name} at {x}");
            found += 1;
        }
        assert_eq!(found, groups.len());
    }
}

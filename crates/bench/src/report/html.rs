//! One page with everything in it: no script, no font, no file beside it. Knows not how anything was measured.

use super::conditions::conditions;
use super::limits::limits;
use super::published::{Beside, beside};
use super::rivals::rivals;
use super::svg::{self, Bars, Labels, Line, escape};
use super::tables::{Group, groups, table};
use crate::experiments::{Experiment, Figure, Plot, Scale};
use crate::results::{Case, Coverage, Point, Record, Spread, Table};
use std::collections::BTreeMap;

/// The axis of languages: servers have a line for each.
const PROTOCOL: &str = "protocol";

const STYLE: &str = include_str!("page.css");

/// The whole page. `coverages` say by the experiments' names what is missing, `facts` are lines on machine and versions.
pub fn page(
    sections: &[(&Experiment, Vec<&Record>)],
    coverages: &BTreeMap<String, Coverage>,
    facts: &[String],
) -> String {
    let servers = server_names(sections);
    let mut body = String::from("<h1>tenon-bench</h1>\n<ul class=\"facts\">");
    facts.iter().for_each(|fact| body += &format!("<li>{}</li>", escape(fact)));
    body += "</ul>\n<nav>";
    for (experiment, _) in sections {
        body += &format!("<a href=\"#{}\">{}</a> ", experiment.name, escape(experiment.title));
    }
    body += "</nav>\n";
    for (experiment, records) in sections {
        let missing = coverages.get(experiment.name).and_then(Coverage::shortfall);
        body += &section(experiment, records, missing, &servers);
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>tenon-bench</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// Every server once, so that it has the same colour in every drawing.
fn server_names<'a>(sections: &[(&Experiment, Vec<&'a Record>)]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for record in sections.iter().flat_map(|(_, records)| records) {
        if !names.contains(&record.server.as_str()) {
            names.push(&record.server);
        }
    }
    names
}

fn section(experiment: &Experiment, records: &[&Record], missing: Option<String>, servers: &[&str]) -> String {
    let mut html = format!(
        "<section id=\"{}\">\n<h2>{}</h2>\n<p>{} <span class=\"study\">After {}.</span></p>\n",
        experiment.name,
        escape(experiment.title),
        escape(experiment.summary),
        escape(experiment.study)
    );
    if let Some(missing) = missing {
        html += &format!("<p class=\"failed\">{}.</p>\n", escape(&missing));
    }
    let owned: Vec<Record> = records.iter().map(|record| (*record).clone()).collect();
    let conditions = conditions(&owned);
    if !conditions.is_empty() {
        html += "<ul class=\"facts\">";
        conditions.iter().for_each(|line| html += &format!("<li>{}</li>", escape(line)));
        html += "</ul>\n";
    }
    let groups = groups(&owned);
    html += "<div class=\"plots\">\n";
    for plot in experiment.plots {
        for drawing in drawings(experiment, plot, &groups, servers) {
            html += &format!("<figure>{drawing}</figure>\n");
        }
    }
    html += "</div>\n";
    if !experiment.published.is_empty() {
        html += "<table class=\"published\"><caption>Published, on other machines, and here</caption>";
        for Beside { what, figure, here } in beside(experiment, &owned) {
            html += &format!("<tr><td>{}</td><td>{}</td><td>{}</td></tr>", escape(what), escape(figure), escape(&here));
        }
        html += "</table>\n";
    }
    if let Some((title, table)) = rivals(experiment, &owned) {
        let caption = format!("<caption>{}</caption>", escape(&title));
        html += &format!("<div class=\"wide\">{}</div>\n", cells(&table, &caption));
    }
    for (title, table) in limits(experiment, &owned) {
        html += &format!("<div class=\"wide\">{}</div>\n", cells(&table, &format!("<caption>{title}</caption>")));
    }
    html += &measured(&table(experiment, &owned));
    let failed: Vec<&Record> = owned.iter().filter(|record| record.failure.is_some()).collect();
    if !failed.is_empty() {
        html += "<p class=\"failed\">Failed, so that no figure was taken:</p><ul class=\"failed\">";
        for record in failed {
            let failure = record.failure.as_deref().unwrap_or_default();
            let what = format!("{}: {failure}", record.shown(experiment.axes));
            html += &format!("<li>{}</li>", escape(&what));
        }
        html += "</ul>\n";
    }
    html + "</section>\n"
}

fn measured(table: &Table) -> String {
    if table.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>{} rows of figures: median (least … greatest)</summary>\n<div class=\"wide\">{}</div></details>\n",
        table.rows().len() - 1,
        cells(table, "")
    )
}

fn cells(table: &Table, caption: &str) -> String {
    let figures: Vec<bool> = (0..table.rows()[0].len()).map(|column| table.holds_figures(column)).collect();
    let row = |cells: &[String], tag: &str| {
        let cells = cells.iter().zip(&figures).map(|(cell, figure)| {
            let class = if *figure { " class=\"figure\"" } else { "" };
            format!("<{tag}{class}>{}</{tag}>", escape(cell))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let (head, rows) = (row(&table.rows()[0], "th"), &table.rows()[1..]);
    let rows: String = rows.iter().map(|cells| row(cells, "td")).collect();
    format!("<table>{caption}\n<thead>{head}</thead>\n<tbody>{rows}</tbody></table>")
}

fn drawings(experiment: &Experiment, plot: &Plot, groups: &[Group<'_>], servers: &[&str]) -> Vec<String> {
    match *plot {
        Plot::Lines { title, x, x_scale, y, y_scale } => {
            line_drawings(experiment, title, x, (x_scale, y_scale), y, groups, servers)
        }
        Plot::Bars { title, each, y } => bar_drawings(experiment, title, each, y, groups, servers),
        Plot::Series { title, y, step_s } => series_drawings(experiment, title, y, step_s, groups, servers),
    }
}

fn colour(servers: &[&str], server: &str) -> usize {
    servers.iter().position(|known| *known == server).unwrap_or(0) % 8
}

/// A server in one language; the languages of memcached have broken lines where the server has another too.
fn name_of(group: &Group<'_>, groups: &[Group<'_>]) -> (String, bool) {
    let protocols = |server: &str| {
        let mut seen: Vec<&Point> =
            groups.iter().filter(|group| group.server == server).filter_map(|group| group.case.at(PROTOCOL)).collect();
        seen.dedup();
        seen
    };
    let (all, own) = (protocols(group.server), group.case.at(PROTOCOL));
    match own {
        Some(own) if all.iter().any(|other| *other != own) => {
            (format!("{} ({own})", group.name()), *own != Point::Word("resp".into()))
        }
        _ => (group.name(), false),
    }
}

/// A drawing for each place on the axes that are neither the drawing's own nor the language.
fn line_drawings(
    experiment: &Experiment,
    title: &str,
    x: &str,
    (x_scale, y_scale): (Scale, Scale),
    y: Figure,
    groups: &[Group<'_>],
    servers: &[&str],
) -> Vec<String> {
    let mut parts: Vec<(Case, Vec<Line>)> = Vec::new();
    for group in groups {
        let (Some(at), Some(spread)) = (group.case.quantity(x), group.spread(y.name)) else { continue };
        let rest = group.case.without(x).without(PROTOCOL);
        let (name, broken) = name_of(group, groups);
        let index = parts.iter().position(|(case, _)| *case == rest).unwrap_or_else(|| {
            parts.push((rest, Vec::new()));
            parts.len() - 1
        });
        let lines = &mut parts[index].1;
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((at, spread)),
            None => {
                lines.push(Line { name, points: vec![(at, spread)], colour: colour(servers, group.server), broken })
            }
        }
    }
    let several = parts.len() > 1;
    let draw = |(case, mut lines): (Case, Vec<Line>)| {
        lines.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        let part = case.shown(experiment.axes);
        let title = if several { format!("{title}: {part}") } else { title.to_owned() };
        svg::lines(Labels { title: &title, x, y: y.heading }, &lines, x_scale, y_scale)
    };
    parts.into_iter().map(draw).collect()
}

/// A drawing for each place on the axis `each`, or one of everything.
fn bar_drawings(
    experiment: &Experiment,
    title: &str,
    each: Option<&str>,
    y: Figure,
    groups: &[Group<'_>],
    servers: &[&str],
) -> Vec<String> {
    let axes = telling_axes(experiment, groups);
    let mut parts: Vec<(Option<&Point>, Vec<Bars>)> = Vec::new();
    for group in groups {
        let Some(spread) = group.spread(y.name) else { continue };
        let place = each.and_then(|each| group.case.at(each));
        let index = parts.iter().position(|(known, _)| *known == place).unwrap_or_else(|| {
            parts.push((place, Vec::new()));
            parts.len() - 1
        });
        let within: Vec<&str> = axes.iter().copied().filter(|axis| Some(*axis) != each).collect();
        let name = group.case.shown(&within);
        let bar = (group.name(), spread, colour(servers, group.server));
        let bars = &mut parts[index].1;
        match bars.iter_mut().find(|bars| bars.name == name) {
            Some(bars) => bars.bars.push(bar),
            None => bars.push(Bars { name, bars: vec![bar] }),
        }
    }
    let several = parts.len() > 1;
    let draw = |(place, bars): (Option<&Point>, Vec<Bars>)| {
        let title = match (each, place) {
            (Some(each), Some(place)) if several => format!("{title}, {each} {place}"),
            _ => title.to_owned(),
        };
        svg::bars(Labels { title: &title, x: "", y: y.heading }, &bars)
    };
    parts.into_iter().map(draw).collect()
}

/// The axes on which not all cases are at one place: the others need not stand under every group.
fn telling_axes<'a>(experiment: &'a Experiment, groups: &[Group<'_>]) -> Vec<&'a str> {
    let tells = |axis: &&&str| {
        let mut places = groups.iter().map(|group| group.case.at(axis));
        let first = places.next();
        places.any(|place| Some(place) != first)
    };
    experiment.axes.iter().filter(tells).copied().collect()
}

/// The first round of each server, as series of several rounds have no median: a drawing for each place on the axes but the
/// language.
fn series_drawings(
    experiment: &Experiment,
    title: &str,
    y: Figure,
    step_s: f64,
    groups: &[Group<'_>],
    servers: &[&str],
) -> Vec<String> {
    let mut parts: Vec<(Case, Vec<Line>)> = Vec::new();
    for group in groups {
        let Some(series) = group.records.first().and_then(|record| record.series.get(y.name)) else { continue };
        let point = |(index, figure): (usize, &f64)| {
            ((index as f64 + 0.5) * step_s, Spread { median: *figure, min: *figure, max: *figure })
        };
        let (name, broken) = name_of(group, groups);
        let points = series.iter().enumerate().map(point).collect();
        let line = Line { name, points, colour: colour(servers, group.server), broken };
        let rest = group.case.without(PROTOCOL);
        match parts.iter_mut().find(|(case, _)| *case == rest) {
            Some((_, lines)) => lines.push(line),
            None => parts.push((rest, vec![line])),
        }
    }
    let several = parts.len() > 1;
    let draw = |(case, lines): (Case, Vec<Line>)| {
        let part = case.shown(experiment.axes);
        let title = if several { format!("{title}: {part}") } else { title.to_owned() };
        svg::lines(Labels { title: &title, x: "seconds", y: y.heading }, &lines, Scale::Linear, Scale::Linear)
    };
    parts.into_iter().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tables::tests::record;
    use super::*;
    use crate::experiments::ALL;
    use crate::results::{Mark, Plan};

    #[test]
    fn a_page_holds_everything_it_needs() {
        let mut records = vec![record("tenon", "get", 0, 10.0), record("redis-server", "get", 0, 20.0)];
        records.push(Record { failure: Some("<it broke>".into()), ..record("tenon", "set", 0, 1.0) });
        let mut coverage = Coverage::default();
        coverage.mark(&Mark::Planned(Plan { measurements: 9, there: 2, servers: vec!["tenon".into()] }));
        let coverages = BTreeMap::from([("latency".to_owned(), coverage)]);
        let page = page(&[(ALL[0], records.iter().collect())], &coverages, &["a machine".to_owned()]);
        assert!(page.contains("<p class=\"failed\">2 of 9 measurements were made (with tenon), then"), "{page}");
        assert!(page.contains("<section id=\"latency\">") && page.contains("<rect class=\"c1\""), "{page}");
        assert!(page.contains("&lt;it broke&gt;") && page.contains("<li>a machine</li>"));
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_page_says_how_far_servers_go() {
        let load = ALL.iter().find(|experiment| experiment.name == "load").expect("it is there");
        let mut one = record("tenon", "get", 0, 10.0);
        one.case = one.case.number("offered op/s", 5_000.0);
        let page = page(&[(*load, vec![&one])], &BTreeMap::new(), &[]);
        assert!(page.contains("<table><caption>Highest offered load with p99 under 1 ms</caption>"), "{page}");
    }

    #[test]
    fn every_plot_of_every_experiment_can_be_drawn() {
        for experiment in ALL {
            let mut records = Vec::new();
            for (server, protocol) in [("tenon", "resp"), ("tenon", "text"), ("memcached", "text")] {
                for (step, quantity) in [1.0, 1_000.0].into_iter().enumerate() {
                    let mut one = record(server, "get", 0, 1.0);
                    one.case = experiment.axes.iter().fold(Case::new(), |case, axis| case.number(axis, quantity));
                    one.case = one.case.word("protocol", protocol);
                    let figures = experiment.figures.iter().map(|figure| figure.name);
                    one.figures = figures.map(|name| (name.to_owned(), step as f64 + 1.0)).collect();
                    one.series.insert("ops_s_over_time".into(), vec![1.0, 2.0, 3.0]);
                    records.push(one);
                }
            }
            let groups = groups(&records);
            for plot in experiment.plots {
                let drawn = drawings(experiment, plot, &groups, &["tenon", "memcached"]);
                assert!(!drawn.is_empty(), "{}: {plot:?}", experiment.name);
                assert!(drawn.iter().all(|svg| svg.contains("tenon") && !svg.contains("NaN")), "{}", experiment.name);
                for svg in drawn {
                    let mut names = legend(&svg);
                    let all = names.len();
                    names.sort_unstable();
                    names.dedup();
                    assert_eq!(names.len(), all, "two of one name: {}: {plot:?}", experiment.name);
                }
            }
        }
    }

    /// What the lines or bars of a drawing are called.
    fn legend(svg: &str) -> Vec<&str> {
        let marks = svg.split("<text class=\"mark\" ").skip(1);
        marks.filter_map(|mark| mark.split(['>', '<']).nth(1)).collect()
    }
}

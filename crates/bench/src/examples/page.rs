//! docs/examples.md, written from the examples. Knows none of them.

use super::{Example, FAMILIES};
use crate::results::Table;

/// The page.
pub fn page() -> String {
    let mut page = String::from(
        "# What the experiment `commands` sends\n\n\
         Made from the examples' declarations; to change a line, change the declaration and run\n\
         `TENON_BLESS=1 cargo test -p tenon-bench examples_page_is_up_to_date`.\n\n\
         Before each measurement the server is emptied and what is in the third column is stored. What is in the fourth is sent\n\
         over and over on one connection, as many commands as the fifth column says before the first reply is waited for.\n\
         The first line of each reply must be what the sixth has, or begin like that where a `*` follows. `100x` says how often the command is sent, `{i}` how many of those were before, `[10: ...]` stands for what is in it ten\n\
         times, with `{j}` for which one, `{r10}` for a number below ten that is drawn anew, `{x32}` for 32 bytes. Words that\n\
         hold blanks, or nothing, stand in backticks.\n",
    );
    for (family, examples) in FAMILIES {
        let heads = ["command", "on", "stored first", "sent", "in flight", "answered by"];
        let mut table = Table::new(heads.map(str::to_owned).to_vec());
        examples.iter().for_each(|example| table.row(row(example)));
        page += &format!("\n## {family}\n\n{}", table.markdown());
    }
    page
}

fn row(example: &Example) -> Vec<String> {
    let templates = |templates: Vec<&str>| templates.into_iter().map(code).collect::<Vec<_>>().join("<br>");
    vec![
        example.command.to_owned(),
        example.on.replace('|', "\\|"),
        templates(example.stock.to_vec()),
        templates(example.turn.iter().map(|(template, _)| *template).collect()),
        example.in_flight.to_string(),
        templates(example.turn.iter().map(|(_, answer)| *answer).collect()),
    ]
}

/// As code in a table's cell, which has one line.
fn code(template: &str) -> String {
    let line = template.replace("\r\n", "\\r\\n").replace('\n', "\\n").replace('|', "\\|");
    if line.contains('`') { format!("``` {line} ```") } else { format!("`{line}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_page_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples.md");
        if std::env::var_os("TENON_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(path, page()).expect("docs can be written");
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == page(), "docs/examples.md is out of date: run this test with TENON_BLESS=1");
    }
}

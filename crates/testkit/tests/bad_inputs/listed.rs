//! Whether README.md, which says where each bad input is tested, names tests and transcripts that there are. Knows none of
//! them.

use std::fs;
use std::path::Path;

/// The file that a name in backquotes means, if it means one.
fn file(name: &str) -> Option<String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [
        here.join("tests/bad_inputs").join(name),
        here.join("tests").join(name),
        here.join("../..").join(name),
        here.join("../../tests/transcripts/redis").join(name),
        here.join("../commands/src/redis").join(name),
    ];
    places.iter().find_map(|path| fs::read_to_string(path).ok())
}

#[test]
fn what_the_list_names_is_there() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_inputs/README.md"));
    let page = page.expect("the list is there");
    let mut checked = 0;
    for row in page.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let (_, tests) = row.trim_end_matches('|').rsplit_once(" | ").expect("a row has two cells");
        // `file` name, name; `file` name
        let mut text = None;
        for (index, part) in tests.split('`').enumerate() {
            if index % 2 == 1 {
                text = if part.contains('.') {
                    Some(file(part).unwrap_or_else(|| panic!("no file {part}")))
                } else {
                    None
                };
                checked += usize::from(text.is_some());
                continue;
            }
            let names = part.split([' ', ',', ';']).filter(|word| word.contains('_'));
            for (name, text) in names.filter_map(|name| Some((name, text.as_ref()?))) {
                assert!(text.contains(&format!("fn {name}(")), "no test {name}");
                checked += 1;
            }
        }
    }
    assert!(checked > 60, "only {checked} names");
}

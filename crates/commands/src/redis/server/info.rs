//! INFO: what there is to know of the server, in sections. Which sections there are and when each is shown stands
//! here; what they say is written elsewhere.

use super::info_keysizes::{KeySizes, key_sizes};
use super::info_sections as write;
use super::info_sections::Facts;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::slices::Slices;
use tenon_engine::wire::resp::Reply;

/// Says what there is to know.
pub static INFO: Command = Command {
    name: "INFO",
    group: Group::Server,
    syntax: "[section [section ...]]",
    summary: "Returns information and statistics about the server.",
    complexity: "O(1); O(N) with N being the number of keys for the section keysizes, which only its own name asks for.",
    since: "1.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::DANGEROUS),
    run: Run::Server(info),
};

/// Bytes that the sections shown by default hardly exceed.
const TEXT_BYTES: usize = 8 * 1024;

/// When a section is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// When nothing else is asked for.
    ByDefault,
    /// When all is asked for.
    WithAll,
    /// When it is asked for by its name.
    ByName,
}

/// What a section is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    /// Keys, or the memory that they take.
    Data,
    /// Neither.
    NoData,
    /// Every single key.
    EachKey,
}

struct Section {
    /// The heading; in any case the name that clients ask for it by.
    title: &'static str,
    shown: Shown,
    reads: Reads,
    /// Whether it is there at all; one that is not has no heading either.
    is_there: fn(&Facts<'_>) -> bool,
    write: fn(&Facts<'_>, &mut String),
}

const fn section(title: &'static str, shown: Shown, write: fn(&Facts<'_>, &mut String)) -> Section {
    Section { title, shown, reads: Reads::NoData, is_there: |_| true, write }
}

/// In the order of Redis, which some clients rely on.
static SECTIONS: &[Section] = &[
    section("Server", Shown::ByDefault, write::server),
    section("Clients", Shown::ByDefault, write::clients),
    Section { reads: Reads::Data, ..section("Memory", Shown::ByDefault, write::memory) },
    section("Persistence", Shown::ByDefault, write::persistence),
    section("Stats", Shown::ByDefault, write::stats),
    section("Replication", Shown::ByDefault, write::replication),
    section("CPU", Shown::ByDefault, write::cpu),
    section("Modules", Shown::ByDefault, |_, _| {}),
    section("Commandstats", Shown::WithAll, write::command_stats),
    section("Errorstats", Shown::ByDefault, write::error_stats),
    section("Latencystats", Shown::WithAll, write::latency_stats),
    section("Cluster", Shown::ByDefault, write::cluster),
    Section { reads: Reads::Data, ..section("Keyspace", Shown::ByDefault, write::keyspace) },
    // Redis shows it by default, and counts with every write for it.
    Section { reads: Reads::EachKey, ..section("Keysizes", Shown::ByName, key_sizes) },
    Section { is_there: write::has_hotkeys, ..section("Hotkeys", Shown::ByDefault, write::hotkeys) },
    section("Tenon", Shown::ByDefault, write::tenon),
];

/// Whether a section is wanted by one of the names that were given.
fn is_wanted(section: &Section, names: &[Vec<u8>]) -> bool {
    let by_default = section.shown == Shown::ByDefault;
    let wants = |name: &Vec<u8>| match name.as_slice() {
        b"default" => by_default,
        b"all" | b"everything" => section.shown != Shown::ByName,
        name => section.title.as_bytes().eq_ignore_ascii_case(name),
    };
    if names.is_empty() { by_default } else { names.iter().any(wants) }
}

fn info(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let names: Vec<Vec<u8>> = args.from(1).map(<[u8]>::to_ascii_lowercase).collect();
    let wanted: Vec<&'static Section> = SECTIONS.iter().filter(|section| is_wanted(section, &names)).collect();
    if wanted.iter().any(|section| section.reads == Reads::EachKey) {
        cx.in_slices(Box::new(WithSizes { wanted, sizes: KeySizes::default(), text: String::new() }), args, reply);
    } else {
        reply.verbatim(b"txt", written(cx, &wanted, KeySizes::default()).as_bytes());
    }
    Ok(())
}

/// The work where all keys are to be looked at.
struct WithSizes {
    wanted: Vec<&'static Section>,
    sizes: KeySizes,
    /// What is answered in the end.
    text: String,
}

impl Slices for WithSizes {
    fn go_on(&mut self, cx: &mut ServerCx<'_>) -> bool {
        let is_done = self.sizes.go_on(cx);
        if is_done {
            self.text = written(cx, &self.wanted, std::mem::take(&mut self.sizes));
        }
        is_done
    }

    fn memory(&self) -> usize {
        0
    }

    fn answer(self: Box<Self>, reply: &mut Reply<'_>) {
        reply.verbatim(b"txt", self.text.as_bytes());
    }
}

fn written(cx: &mut ServerCx<'_>, wanted: &[&Section], key_sizes: KeySizes) -> String {
    let reads_data = wanted.iter().any(|section| section.reads == Reads::Data);
    let mut facts = if reads_data { Facts::gather(cx) } else { Facts::without_data(cx) };
    facts.key_sizes = key_sizes;
    let mut text = String::with_capacity(TEXT_BYTES);
    for section in wanted.iter().filter(|section| (section.is_there)(&facts)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        text.extend(["# ", section.title, "\r\n"]);
        (section.write)(&facts, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        SECTIONS.iter().filter(|section| is_wanted(section, &names)).map(|section| section.title).collect()
    }

    #[test]
    fn sections_are_chosen_by_name() {
        assert_eq!(wanted(&["keyspace", "server", "nothing"]), ["Server", "Keyspace"]);
        assert_eq!(wanted(&["nothing"]), [""; 0]);
        assert_eq!(wanted(&[]), wanted(&["default"]));
        assert!(!wanted(&[]).contains(&"Commandstats"));
        assert_eq!(wanted(&["all"]).len(), SECTIONS.len() - 1);
        assert_eq!(wanted(&["everything"]), wanted(&["all"]));
        assert_eq!(wanted(&["all", "keysizes"]).len(), SECTIONS.len());
        assert!(wanted(&["default", "commandstats"]).contains(&"Commandstats"));
    }
}

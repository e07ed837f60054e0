//! Random commands to Tenon and to redis-server 7.0, whose answers must be the same, and what is stored then. Knows no
//! handler; what is asked in which case on purpose stands in the transcripts.
//!
//! `TENON_RANDOM_TIMES=100 cargo test -p tenon-testkit --test resp_random` plays a hundred times as many cases, and
//! `TENON_RANDOM_SEED=n` begins with that one.
#![forbid(unsafe_code)]

mod compare;
mod families;
mod framing;
mod grammar;
mod known;
mod messages;
mod reply;
mod scripts;
mod sides;
mod words;

use compare::compare;
use grammar::Grammar;

/// Cases of a family, each of 8 to 57 requests.
const CASES: usize = 60;

/// Plays cases of one family, with requests about keys, strings and of all other types between them.
fn check(seed: u64, family: &'static str) {
    let family = Grammar::new(&[family]);
    let others = Grammar::new(&DATA);
    let keys = Grammar::new(&[families::KEYS]);
    compare(seed, CASES, &[&family, &keys, &others]);
}

macro_rules! families {
    ($($name:ident: $seed:literal, $family:ident;)*) => {$(
        #[test]
        fn $name() {
            check($seed, families::$family);
        }
    )*};
}

families! {
    keys: 1_000_000, KEYS;
    strings: 2_000_000, STRINGS;
    bits: 3_000_000, BITS;
    lists: 4_000_000, LISTS;
    sets: 5_000_000, SETS;
    hashes: 6_000_000, HASHES;
    sorted_sets: 7_000_000, ZSETS;
    streams: 8_000_000, STREAMS;
    hyperloglogs: 9_000_000, HYPERLOGLOGS;
    places: 10_000_000, PLACES;
}

/// All families of data.
const DATA: [&str; 10] = [
    families::STRINGS,
    families::LISTS,
    families::SETS,
    families::HASHES,
    families::ZSETS,
    families::STREAMS,
    families::KEYS,
    families::BITS,
    families::PLACES,
    families::HYPERLOGLOGS,
];

/// Scripts call commands of all families.
#[test]
fn scripts() {
    let own = Grammar::new(&[families::SCRIPTS]).calling(&DATA);
    compare(11_000_000, CASES, &[&own, &Grammar::new(&DATA)]);
}

/// COMMAND GETKEYS and ACL DRYRUN are given commands of all families.
#[test]
fn server() {
    let own = Grammar::new(&[families::SERVER]).calling(&DATA).calling(&[families::SCRIPTS]);
    compare(12_000_000, CASES, &[&own, &Grammar::new(&DATA)]);
}

/// Settings, which are put back behind each case.
#[test]
fn settings() {
    compare(13_000_000, CASES, &[&Grammar::new(&[families::SETTINGS])]);
}

//! However the bytes of a stream are cut, the decoders make the same of them.
#![allow(missing_docs)]

#[path = "feed/connection.rs"]
mod feed;

use feed::{MemcacheEvent, RespEvent, memcache_events, pieces, resp_events};
use proptest::collection::vec;
use proptest::prelude::*;
use tenon_wire::resp::{Value, ValueDecoder, ValueLimits};
use tenon_wire::{memcache, resp};

fn resp_limits() -> resp::Limits {
    resp::Limits { big_min: 24, inline_max: 300, bulk_len_max: 1000, ..resp::Limits::default() }
}

fn memcache_limits() -> memcache::Limits {
    memcache::Limits { value_max: 100, line_max: 400, big_min: 24, ..Default::default() }
}

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..8), vec(b'a'..=b'c', 20..60)]
}

/// A command and its bytes, as an array or inline.
fn resp_command() -> impl Strategy<Value = (Option<Vec<Vec<u8>>>, Vec<u8>)> {
    let array = vec(argument(), 1..12).prop_map(|args| {
        let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
        for arg in &args {
            bytes.extend(format!("${}\r\n", arg.len()).as_bytes());
            bytes.extend(arg);
            bytes.extend(b"\r\n");
        }
        (Some(args), bytes)
    });
    let inline = vec(argument(), 1..4).prop_map(|args| {
        let quoted = |arg: &Vec<u8>| arg.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let line = args.iter().map(|arg| format!("\"{}\"", quoted(arg))).collect::<Vec<_>>().join(" ");
        (Some(args), format!("{line}\r\n").into_bytes())
    });
    let empty = prop_oneof![Just("\r\n"), Just("*0\r\n"), Just("*-1\r\n"), Just("  \n")];
    prop_oneof![
        4 => array,
        1 => inline.prop_filter("the line is short enough", |(_, bytes)| bytes.len() < 300),
        1 => empty.prop_map(|text| (None, text.into())),
    ]
}

/// Bytes out of which wrong streams of all kinds arise.
fn resp_noise() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(b"*".to_vec()),
        Just(b"$".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"1".to_vec()),
        Just(b"2".to_vec()),
        Just(b"30".to_vec()),
        Just(b"-".to_vec()),
        Just(b"\"".to_vec()),
        Just(b" ".to_vec()),
        Just(b"abc".to_vec()),
        Just(vec![b'x'; 200]),
        vec(any::<u8>(), 0..4),
    ];
    vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

fn memcache_line() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        3 => Just("k".to_owned()),
        3 => (0..60u32).prop_map(|n| n.to_string()),
        1 => Just("noreply".to_owned()),
        1 => Just("-1".to_owned()),
        1 => Just(String::new()),
        1 => (245..255usize).prop_map(|len| "k".repeat(len)),
        1 => Just("1\r".to_owned()),
        1 => prop::sample::select(vec!["b", "Zm9v", "MS", "T30", "C1", "v", "F!", "Oo", "k"]).prop_map(str::to_owned),
    ];
    let verb = prop::sample::select(vec![
        "get",
        "gets",
        "gat",
        "gats",
        "set",
        "add",
        "cas",
        "append",
        "incr",
        "decr",
        "delete",
        "touch",
        "flush_all",
        "version",
        "verbosity",
        "stats",
        "quit",
        "shutdown",
        "cache_memlimit",
        "mg",
        "ms",
        "ms k",
        "md",
        "ma",
        "me",
        "mn",
        "",
        "x",
    ]);
    let line = (verb, vec(word, 0..9), prop::bool::ANY).prop_map(|(verb, words, cr)| {
        format!("{verb} {}{}", words.join(" "), if cr { "\r\n" } else { "\n" }).into_bytes()
    });
    let store = (0..120usize, prop::bool::weighted(0.9), prop::bool::ANY).prop_map(|(len, good, noreply)| {
        let noreply = if noreply { " noreply" } else { "" };
        let end = if good { "\r\n" } else { "xx" };
        format!("set key 1 2 {len}{noreply}\r\n{}{end}", "d".repeat(len)).into_bytes()
    });
    prop_oneof![line, store]
}

proptest! {
    #[test]
    fn commands_come_out_as_they_went_in(
        commands in vec(resp_command(), 1..6),
        cuts in vec(0..600usize, 0..12),
    ) {
        let input: Vec<u8> = commands.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let expected: Vec<RespEvent> =
            commands.into_iter().filter_map(|(args, _)| args.map(RespEvent::Command)).collect();
        let every: Vec<usize> = (0..input.len()).collect();
        for cuts in [&[][..], &cuts, &every] {
            prop_assert_eq!(&resp_events(&pieces(&input, cuts), &resp_limits()), &expected);
        }
    }

    #[test]
    fn noise_is_the_same_noise(input in resp_noise(), cuts in vec(0..600usize, 0..12)) {
        let whole = resp_events(&[&input], &resp_limits());
        let every: Vec<usize> = (0..input.len()).collect();
        for cuts in [&cuts, &every] {
            prop_assert_eq!(&resp_events(&pieces(&input, cuts), &resp_limits()), &whole);
        }
    }

    #[test]
    fn memcache_requests_are_the_same(
        lines in vec(memcache_line(), 1..8),
        cuts in vec(0..2000usize, 0..12),
    ) {
        let input = lines.concat();
        let whole = memcache_events(&[&input], &memcache_limits());
        let every: Vec<usize> = (0..input.len()).collect();
        for cuts in [&cuts, &every] {
            prop_assert_eq!(&memcache_events(&pieces(&input, cuts), &memcache_limits()), &whole);
        }
    }

    #[test]
    fn values_are_the_same(input in resp_noise(), cuts in vec(0..600usize, 0..12)) {
        // An array around the noise: values of several elements.
        let input = [b"*3\r\n+a\r\n".to_vec(), input].concat();
        let whole = Value::decode(&input);
        let mut decoder = ValueDecoder::new();
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|&cut| cut < input.len()).chain([input.len()]).collect();
        cuts.sort_unstable();
        let mut got = Ok(None);
        for cut in cuts {
            got = decoder.next(&input[..cut], &ValueLimits::default());
            if got != Ok(None) {
                break;
            }
        }
        prop_assert_eq!(format!("{got:?}"), format!("{whole:?}"));
    }
}

#[test]
fn every_single_cut() {
    let input =
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$30\r\n012345678901234567890123456789\r\nPING \"a b\"\r\n*1\r\n$4\r\nPING\r\n";
    let whole = resp_events(&[input], &resp_limits());
    assert_eq!(whole.len(), 3);
    let requests = b"set k 1 2 30\r\n012345678901234567890123456789\r\nget k kk\r\nset k 0 0 101\r\nx\r\n";
    let memcache_whole = memcache_events(&[requests], &memcache_limits());
    assert_eq!(memcache_whole.len(), 3);
    for cut in 1..input.len() {
        assert_eq!(resp_events(&pieces(input, &[cut]), &resp_limits()), whole, "{cut}");
        assert_eq!(memcache_events(&pieces(requests, &[cut]), &memcache_limits()), memcache_whole, "{cut}");
    }
}

#[test]
fn an_endless_multiget_takes_no_memory_and_loses_no_key() {
    let keys: Vec<Vec<u8>> = (0..50_000).map(|n| format!("key:{n}").into_bytes()).collect();
    let input = [b"gats 5 ".to_vec(), keys.join(&b' '), b"\r\nget k\n".to_vec()].concat();
    let cuts: Vec<usize> = (0..input.len()).step_by(1000).collect();
    for cuts in [&[][..], &cuts] {
        let events = memcache_events(&pieces(&input, cuts), &memcache::Limits::default());
        assert_eq!(
            events,
            [
                MemcacheEvent::Get(memcache::GetVerb::Gats, Some(5), keys.clone(), true),
                MemcacheEvent::Get(memcache::GetVerb::Get, None, vec![b"k".to_vec()], true),
            ]
        );
    }
}

/// A million arguments byte by byte: with any work that is repeated for each byte this would not end.
#[test]
fn a_command_of_many_arguments_trickles_in() {
    const COUNT: usize = 1_000_000;
    let mut input = format!("*{COUNT}\r\n").into_bytes();
    input.extend(b"$1\r\na\r\n".repeat(COUNT));
    let limits = resp::Limits::default();
    let mut decoder = resp::CommandDecoder::new();
    let mut args = tenon_wire::ArgSpans::new();
    for cut in 1..input.len() {
        assert_eq!(decoder.next(&input[..cut], 0, &mut args, &limits), Ok(resp::Step::Incomplete));
    }
    let end = input.len();
    assert_eq!(decoder.next(&input, 0, &mut args, &limits), Ok(resp::Step::Command { end }));
    assert_eq!(args.spans.len(), COUNT);
    assert!(decoder.memory() < 4096, "the memory of the long command is given back");
}

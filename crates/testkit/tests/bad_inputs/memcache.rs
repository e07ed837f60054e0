//! Requests that are no memcached text, or that nobody should send: memcached's words. Knows no verb's work.

use crate::support::Ends::{self, Closed, InStep};
use crate::support::{MIB, assert_alive, connect, converse, data, read_until_closed, resp, send, tenon, within_memory};
use std::collections::{BTreeMap, BTreeSet};
use tenon_testkit::oracle::oracle;
use tenon_testkit::target::Dialect;

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format\r\n";

/// Tries one request against Tenon, and against memcached where `alike`.
struct Trial {
    tenon: tenon_testkit::server::Server,
    memcached: Option<tenon_testkit::server::Server>,
    failures: Vec<String>,
}

impl Trial {
    fn new() -> Trial {
        let trial = Trial { tenon: tenon(&[]), memcached: oracle(Dialect::Memcache, &[]), failures: Vec::new() };
        resp(&trial.tenon).call(&[b"SET", b"kept", b"10"]).expect("stored");
        if let Some(memcached) = &trial.memcached {
            let stored = converse(memcached, Dialect::Memcache, b"set kept 0 0 2\r\n10\r\n", InStep);
            assert_eq!(stored, Ok(b"STORED\r\n".to_vec()));
        }
        trial
    }

    fn tries(&mut self, bytes: impl AsRef<[u8]>, answer: impl AsRef<[u8]>, ends: Ends, alike: bool) {
        let (bytes, expected) = (bytes.as_ref(), Ok(answer.as_ref().to_vec()));
        let shown = bytes[..bytes.len().min(200)].escape_ascii();
        let show = |answer: &Result<Vec<u8>, String>| match answer {
            Ok(bytes) => bytes[..bytes.len().min(300)].escape_ascii().to_string(),
            Err(problem) => problem.clone(),
        };
        let servers = [(Some(&self.tenon), "tenon"), (self.memcached.as_ref().filter(|_| alike), "memcached")];
        for (server, name) in servers {
            let Some(server) = server else { continue };
            let answer = converse(server, Dialect::Memcache, bytes, ends);
            if answer != expected {
                self.failures.push(format!("{name} to '{shown}': '{}', not '{}'", show(&answer), show(&expected)));
            }
        }
        let left = data(&self.tenon);
        let kept = left.get(b"kept".as_slice());
        if left.len() != 1 || kept != Some(&tenon_client::Value::Bulk(b"10".to_vec())) {
            self.failures.push(format!("'{shown}' changed the data: {left:?}"));
        }
    }

    fn in_step(&mut self, bytes: impl AsRef<[u8]>, answer: impl AsRef<[u8]>) {
        self.tries(bytes, answer, InStep, true);
    }

    fn end(self) {
        assert!(self.failures.is_empty(), "{}", self.failures.join("\n"));
        assert_alive(&self.tenon);
    }
}

#[test]
fn keys_that_are_none() {
    let mut trial = Trial::new();
    let long = "k".repeat(251);
    for verb in ["get", "gets"] {
        trial.in_step(format!("{verb} {long}\r\n"), BAD_FORMAT);
        trial.in_step(format!("{verb}\r\n"), "ERROR\r\n");
        trial.in_step(format!("{verb} \r\n"), "ERROR\r\n");
    }
    for line in ["incr # 1", "decr # 1", "touch # 0", "delete #"] {
        trial.in_step(format!("{}\r\n", line.replace('#', &long)), BAD_FORMAT);
        trial.in_step(format!("{}\r\n", line.replace('#', "")), "ERROR\r\n");
    }
    for verb in ["set", "add", "replace", "append", "prepend"] {
        // Memcached 1.6.18 takes the data for a request.
        trial.tries(format!("{verb} {long} 0 0 9\r\nflush_all\r\n"), BAD_FORMAT, InStep, false);
        trial.in_step(format!("{verb}  0 0 2\r\n"), "ERROR\r\n");
    }
    // Control characters end no key and break no answer.
    trial.in_step("get a\tb\x01\x7f\r\n", "END\r\n");
    trial.end();
}

#[test]
fn blocks_that_are_not_as_said() {
    let mut trial = Trial::new();
    trial.in_step("set new 0 0 3\r\nabcdef\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n");
    for len in ["-1", "-2147483648", "x", "1x", "9223372036854775808", "99999999999999999999"] {
        trial.in_step(format!("set new 0 0 {len}\r\n"), BAD_FORMAT);
    }
    // memcached waits for as many bytes as are left of the number when its upper half is cut off.
    trial.tries("set new 0 0 4294967296\r\n", BAD_FORMAT, InStep, false);
    // The block of what is refused as its line is read is not taken for requests where its length is known. Memcached 1.6.18
    // takes it for some, 1.6.45 does not.
    for flags in ["-1", "x", "1x", "99999999999999999999", "4294967296"] {
        trial.tries(format!("set new {flags} 0 9\r\nflush_all\r\n"), BAD_FORMAT, InStep, false);
    }
    for exptime in ["x", "1x", "9223372036854775808", "99999999999999999999"] {
        trial.tries(format!("set new 0 {exptime} 9\r\nflush_all\r\n"), BAD_FORMAT, InStep, false);
    }
    trial.tries("cas kept 0 0 9 x\r\nflush_all\r\n", BAD_FORMAT, InStep, false);
    trial.in_step("cas kept 0 0 1\r\n", "ERROR\r\n");
    trial.end();
}

#[test]
fn a_block_that_ends_early_is_not_stored() {
    let server = tenon(&[]);
    resp(&server).call(&[b"SET", b"kept", b"10"]).expect("stored");
    // What follows belongs to the block, and when the client goes there is no item.
    for bytes in [&b"set new 0 0 100\r\nabc\r\nget kept\r\n"[..], b"ms new 100\r\nabc\r\n", b"set kept 0 0 300000\r\nx"]
    {
        let mut stream = connect(&server, Dialect::Memcache);
        send(&mut stream, bytes);
        stream.finish_sending().expect("the other half stays open");
        assert_eq!(read_until_closed(&mut stream), Ok(Vec::new()), "{}", bytes.escape_ascii());
    }
    assert_eq!(data(&server), BTreeMap::from([(b"kept".to_vec(), tenon_client::Value::Bulk(b"10".to_vec()))]));
    assert_alive(&server);
}

#[test]
fn strangers_cannot_pile_up_anything() {
    let server = tenon(&[("memcached-auth", "yes"), ("requirepass", "secret")]);
    const LINES: usize = 200_000;
    const ANSWER: &[u8] = b"CLIENT_ERROR unauthenticated\r\n";
    within_memory(&server, 32 * MIB, || {
        // Many empty lines, whose answers nobody reads until all are sent or the server waits.
        let mut stream = connect(&server, Dialect::Memcache);
        let mut writer = stream.try_clone().expect("a second handle");
        let writing = std::thread::spawn(move || send(&mut writer, &b"\r\n".repeat(LINES)));
        let mut answer = vec![0; LINES * ANSWER.len()];
        std::io::Read::read_exact(&mut stream, &mut answer).expect("an answer to each");
        writing.join().expect("sent");
        assert!(answer.chunks(ANSWER.len()).all(|line| line == ANSWER));
        // A password longer than any, announced and sent, and a line that never ends.
        let mut stream = connect(&server, Dialect::Memcache);
        send(&mut stream, b"set x 0 0 2000000000\r\n");
        let mut answer = [0; b"CLIENT_ERROR auth token too long\r\n".len()];
        std::io::Read::read_exact(&mut stream, &mut answer).expect("an answer");
        assert_eq!(answer, *b"CLIENT_ERROR auth token too long\r\n");
        let mut stream = connect(&server, Dialect::Memcache);
        send(&mut stream, &vec![b'x'; 16 * MIB]);
        assert_eq!(read_until_closed(&mut stream), Ok(Vec::new()));
    });
    assert_alive(&server);
}

#[test]
fn deltas_and_times_that_are_no_numbers() {
    let mut trial = Trial::new();
    for delta in ["-1", "x", "1x", "1.0", "0x5", "18446744073709551616", "99999999999999999999999"] {
        for verb in ["incr", "decr"] {
            trial.in_step(format!("{verb} kept {delta}\r\n"), "CLIENT_ERROR invalid numeric delta argument\r\n");
            trial.in_step(format!("{verb} kept {delta} noreply\r\n"), "");
        }
    }
    for exptime in ["x", "1x", "99999999999999999999"] {
        trial.in_step(format!("touch kept {exptime}\r\n"), "CLIENT_ERROR invalid exptime argument\r\n");
        trial.in_step(format!("gat {exptime} kept\r\n"), "CLIENT_ERROR invalid exptime argument\r\n");
        trial.in_step(format!("flush_all {exptime}\r\n"), "CLIENT_ERROR invalid exptime argument\r\n");
    }
    trial.end();
}

#[test]
fn lines_and_protocols_that_lead_nowhere() {
    let mut trial = Trial::new();
    let too_long = "CLIENT_ERROR line too long\r\n";
    // memcached hangs up without a word.
    trial.tries(" ".repeat(9_000), too_long, Closed, false);
    trial.tries("x".repeat(9_000), too_long, Closed, false);
    trial.tries(format!("set {} 0 0 1\r\n", "x".repeat(9_000)), too_long, Closed, false);
    // HTTP: a browser must not be made to send requests in its body.
    trial.tries("POST / HTTP/1.1\r\nHost: x\r\n\r\nset kept 0 0 3\r\nnew\r\n", "", Closed, false);
    trial.in_step("\x16\x03\x01\x02\r\n", "ERROR\r\n");
    trial.in_step("*1\r\n$4\r\nPING\r\n", "ERROR\r\nERROR\r\nERROR\r\n");
    trial.in_step("\r\n\r\n\r\n", "ERROR\r\nERROR\r\nERROR\r\n");
    trial.end();
}

#[test]
fn flags_of_meta_commands() {
    let mut trial = Trial::new();
    let duplicate = "CLIENT_ERROR duplicate flag\r\n";
    let no_flags = "CLIENT_ERROR invalid or duplicate flag\r\n";
    let no_number = "CLIENT_ERROR bad token in command line format\r\n";
    let long = "k".repeat(251);
    for verb in ["mg", "md", "ma"] {
        let words = |own| if verb == "mg" { own } else { no_flags };
        trial.in_step(format!("{verb}\r\n"), "ERROR\r\n");
        trial.in_step(format!("{verb} \r\n"), "ERROR\r\n");
        trial.in_step(format!("{verb} {long}\r\n"), BAD_FORMAT);
        trial.in_step(format!("{verb} nosuch O{}\r\n", "o".repeat(32)), "CLIENT_ERROR opaque token too long\r\n");
        trial.in_step(format!("{verb} nosuch !\r\n"), words("CLIENT_ERROR invalid flag\r\n"));
        trial.in_step(format!("{verb} nosuch \u{e9}\r\n"), words(duplicate));
        for flag in "bcfhklOqstuvITNRFCMJDPL".chars() {
            // The first of them may be refused before the second is looked at.
            trial.in_step(format!("{verb} Zm9v {flag}1 {flag}1\r\n"), words(duplicate));
        }
        // The last flag lacks its argument, or has one that is none.
        for (flag, own) in [
            ("T", no_number),
            ("N", no_number),
            ("R", no_number),
            ("C", no_number),
            ("F", BAD_FORMAT),
            ("D", "CLIENT_ERROR invalid numeric delta value\r\n"),
            ("J", "CLIENT_ERROR invalid numeric initial value\r\n"),
            ("M", "CLIENT_ERROR incorrect length for M token\r\n"),
        ] {
            for argument in ["", "xx", "99999999999999999999"] {
                trial.in_step(format!("{verb} nosuch {flag}{argument}\r\n"), words(own));
            }
        }
        for key in ["!!!!", "Zm9", "Z===", "="] {
            trial.in_step(format!("{verb} {key} b\r\n"), words("CLIENT_ERROR error decoding key\r\n"));
        }
        let many = (0..40).map(|number| format!(" O{number}")).collect::<String>();
        let too_many = if verb == "mg" { "flags are too long" } else { "flags too long" };
        trial.in_step(format!("{verb} nosuch{many}\r\n"), format!("CLIENT_ERROR options {too_many}\r\n"));
    }
    // Of a write the data is passed over where its length is known, and is a request of its own where not.
    for flags in ["!", "s s", "T", "Tx", "MX", "MSS", "b", "Fx", "C"] {
        let answer = match flags {
            "!" => "CLIENT_ERROR invalid flag\r\n",
            "s s" => duplicate,
            "T" | "Tx" | "C" => no_number,
            "MX" => "CLIENT_ERROR invalid mode for ms M token\r\n",
            "MSS" => "CLIENT_ERROR incorrect length for M token\r\n",
            "b" => "CLIENT_ERROR error decoding key\r\n",
            _ => BAD_FORMAT,
        };
        trial.in_step(format!("ms new 6 {flags}\r\nmd new\r\n"), answer);
    }
    for len in ["", "x", "-1", "1x", "2147483647", "99999999999999999999"] {
        trial.in_step(format!("ms new {len}\r\nmn\r\n"), format!("{BAD_FORMAT}MN\r\n"));
    }
    trial.tries(format!("ms {long} 2\r\nmn\r\n"), BAD_FORMAT, InStep, false);
    trial.in_step("ms new 3 q\r\nabcdef\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n");
    trial.end();
}

#[test]
fn counters_wrap_at_the_top_and_stop_at_the_bottom() {
    let server = tenon(&[]);
    let memcached = oracle(Dialect::Memcache, &[]);
    let requests = "set n 0 0 20\r\n18446744073709551615\r\nincr n 0\r\nincr n 1\r\nincr n 18446744073709551615\r\n\
        incr n 18446744073709551615\r\ndecr n 18446744073709551615\r\ndecr n 1\r\nset n 0 0 20\r\n\
        18446744073709551616\r\nincr n 1\r\nset n 0 0 2\r\n-1\r\nincr n 1\r\ndecr n 1\r\nset n 0 0 0\r\n\r\nincr n 1\r\n";
    let not_number = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    let answers = format!(
        "STORED\r\n18446744073709551615\r\n0\r\n18446744073709551615\r\n18446744073709551614\r\n0\r\n0\r\n\
        STORED\r\n{not_number}STORED\r\n{not_number}{not_number}STORED\r\n{not_number}"
    );
    for server in [Some(&server), memcached.as_ref()].into_iter().flatten() {
        let answer = converse(server, Dialect::Memcache, requests.as_bytes(), InStep).expect("answers");
        assert_eq!(String::from_utf8_lossy(&answer), answers);
    }
    assert_alive(&server);
}

#[test]
fn the_words_of_refusals_are_few() {
    // Whatever word comes where, the answer is one line that a client knows, and the next request is understood.
    let server = tenon(&[]);
    let words = ["set", "get", "incr", "k", "-1", "", "\0", "18446744073709551616", "noreply", "\u{7f}"];
    let mut seen = BTreeSet::new();
    for first in words {
        for second in words {
            for third in words {
                let line = format!("{first} {second} {third}\r\n");
                let answer = converse(&server, Dialect::Memcache, line.as_bytes(), InStep).expect(&line);
                seen.insert(String::from_utf8_lossy(&answer).into_owned());
            }
        }
    }
    for answer in &seen {
        let known = ["", "END\r\n", "ERROR\r\n", "NOT_FOUND\r\n"].contains(&answer.as_str());
        assert!(known || answer.starts_with("CLIENT_ERROR "), "{answer:?} is no refusal");
    }
}

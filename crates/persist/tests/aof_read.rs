//! Append-only files read whole, cut at every byte, and spoilt. Knows what each must give.

use std::io::{self, Read};
use tenon_persist::aof::read::Fault;
use tenon_persist::aof::{ReadError, Reader, is_rdb};

fn command(args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
    format!("*{}\r\n{}", args.len(), args.concat())
}

/// Gives so many bytes at once.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.1.min(self.0.len()).min(buffer.len());
        let (now, rest) = self.0.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.0 = rest;
        Ok(len)
    }
}

/// All records as text, and how it ended.
fn read(bytes: &[u8]) -> (String, String) {
    let mut reader = Reader::new(Trickle(bytes, 7));
    let mut text = String::new();
    let end = loop {
        match reader.next() {
            Ok(Some(record)) => {
                text += &format!("{}-{}{}", record.at, record.end, if record.is_transaction { " multi" } else { "" });
                for command in record.commands() {
                    let words = command.annotations().map(|line| [b"#", line].concat());
                    let words: Vec<Vec<u8>> = words.chain(command.args().map(<[u8]>::to_vec)).collect();
                    text += &format!(" [{}: {}]", command.at, String::from_utf8_lossy(&words.join(&b' ')));
                }
                text.push('\n');
            }
            Ok(None) => break format!("end at {}", reader.valid_up_to()),
            Err(ReadError::Truncated { valid_up_to, in_transaction }) => {
                break format!("truncated, valid up to {valid_up_to}{}", if in_transaction { ", no EXEC" } else { "" });
            }
            Err(ReadError::Format { at, valid_up_to, fault }) => {
                break format!("format at {at}, valid up to {valid_up_to}: {fault}");
            }
            Err(ReadError::Read(error)) => break error.to_string(),
        }
    };
    (text, end)
}

fn sample() -> String {
    [
        "#TS:1700000000\r\n".to_owned(),
        command(&["SELECT", "0"]),
        "#TENON:FLAGS 7\r\n".to_owned(),
        command(&["SET", "k", ""]),
        command(&["multi"]),
        command(&["SET", "a", "1"]),
        "#TS:1700000001\r\n".to_owned(),
        command(&["DEL", "b"]),
        command(&["EXEC"]),
        "#TS:1700000002\r\n".to_owned(),
    ]
    .concat()
}

#[test]
fn records_come_with_their_annotations_and_places() {
    let (text, end) = read(sample().as_bytes());
    let expected = "0-39 [16: #TS:1700000000 SELECT 0]\n39-81 [55: #TENON:FLAGS 7 SET k ]\n\
                    81-173 multi [96: SET a 1] [139: #TS:1700000001 DEL b]\n";
    assert_eq!((text.as_str(), end.as_str()), (expected, "end at 189"));
    assert_eq!(read(b""), (String::new(), "end at 0".to_owned()));
}

#[test]
fn a_file_cut_anywhere_is_valid_up_to_its_last_whole_record() {
    let sample = sample();
    let ends = [0, 39, 81, 173];
    for cut in 0..sample.len() {
        let (text, end) = read(&sample.as_bytes()[..cut]);
        let whole = ends.iter().rposition(|&end| end <= cut).expect("zero is there");
        assert_eq!(text.lines().count(), whole, "cut at {cut}");
        let is_clean = [0, 16, 39, 81, 173, 189].contains(&cut);
        let expected =
            if is_clean { format!("end at {cut}") } else { format!("truncated, valid up to {}", ends[whole]) };
        assert!(end.starts_with(&expected), "cut at {cut}: {end}");
        // An annotation about the next command (cut at 55) goes with it.
        // Where EXEC is all that is missing, it is said.
        assert_eq!(end.ends_with(", no EXEC"), [96, 123, 139, 159].contains(&cut), "cut at {cut}: {end}");
    }
}

#[test]
fn a_tail_of_zeros_is_a_torn_one() {
    let sample = sample();
    for cut in [39, 40, 41, 43, 45, 50, 60, 62, 70, 100, 140, 172] {
        let torn = [&sample.as_bytes()[..cut], &[0; 5000]].concat();
        let (text, end) = read(&torn);
        assert!(end.starts_with("truncated") && !text.is_empty(), "cut at {cut}: {end}");
        let middle = [&torn[..], b"*1\r\n$4\r\nPING\r\n"].concat();
        let (_, end) = read(&middle);
        assert!(end.starts_with("format at "), "what follows must not be lost: {end}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let ping = "*1\r\n$4\r\nPING\r\n";
    for (bytes, expected) in [
        ("x", "format at 14, valid up to 14: Expected prefix '*', got: 'x'"),
        ("PING\r\n", "format at 14, valid up to 14: Expected prefix '*', got: 'P'"),
        ("*0\r\n", "format at 14, valid up to 14: 0 is not in the suitable range"),
        ("*-1\r\n", "format at 14, valid up to 14: -1 is not in the suitable range"),
        ("*2147483648\r\n", "format at 14, valid up to 14: 2147483648 is not in the suitable range"),
        ("*1x\r\n", "format at 16, valid up to 14: Expected a number"),
        ("*\r\n", "format at 15, valid up to 14: Expected a number"),
        ("*1\n$1\r\nx\r\n", "format at 15, valid up to 14: Expected \\r\\n, got: 310a"),
        ("*1\r\n+OK\r\n", "format at 18, valid up to 14: Expected prefix '$', got: '+'"),
        ("*1\r\n$-1\r\n", "format at 18, valid up to 14: -1 is not in the suitable range"),
        ("*1\r\n$4294966272\r\n", "format at 18, valid up to 14: 4294966272 is not in the suitable range"),
        ("*1\r\n$1\r\nab\r\n", "format at 23, valid up to 14: Expected \\r\\n, got: 620d"),
        ("*1\r\n$4\r\nEXEC\r\n", "format at 14, valid up to 14: Unexpected EXEC"),
        ("*1\r\n$5\r\nMULTI\r\n*1\r\n$5\r\nMULTI\r\n", "format at 29, valid up to 14: Unexpected MULTI"),
        ("*2147483647\r\n$1\r\nx\r\n", "truncated, valid up to 14"),
        ("*1\r\n$536870912\r\nx\r\n", "truncated, valid up to 14"),
    ] {
        assert_eq!(read(format!("{ping}{bytes}").as_bytes()).1, expected, "{bytes:?}");
    }
    let long = format!("{ping}#{}\r\n", "x".repeat(2000));
    assert_eq!(read(long.as_bytes()).1, "format at 14, valid up to 14: The annotation is too long");
}

#[test]
fn long_arguments_are_read_up_to_the_limit() {
    let long = "v".repeat(3_000_000);
    let file = command(&["SET", "k", &long]) + &command(&["PING"]);
    let mut reader = Reader::new(file.as_bytes());
    let record = reader.next().expect("it is whole").expect("it is there");
    let args: Vec<&[u8]> = record.commands().next().expect("one").args().collect();
    assert_eq!(args[2].len(), long.len());
    assert!(reader.next().expect("it is whole").is_some());
    let mut strict = Reader::new(file.as_bytes()).with_bulk_len_max(2_999_999);
    assert!(matches!(strict.next(), Err(ReadError::Format { fault: Fault::Number(3_000_000), .. })));
}

#[test]
fn snapshots_are_told_from_commands() {
    assert!(is_rdb(b"REDIS0011") && is_rdb(b"VALKEY080") && !is_rdb(b"*1\r\n$") && !is_rdb(b"REDI"));
}

//! Commands that the decoder says are plainly written are arrays of bulk strings to the byte, and read as the careful way
//! reads them.
#![allow(missing_docs)]

use proptest::collection::vec;
use proptest::prelude::*;
use tenon_wire::resp::{CommandDecoder, Limits, Step};
use tenon_wire::{ArgSpans, Place};

fn array(args: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

#[derive(Debug)]
struct Command {
    args: Vec<Vec<u8>>,
    /// Its bytes on the wire.
    sent: Vec<u8>,
    /// Whether these are said to be plain.
    is_plain: bool,
}

/// The commands that the stream begins with.
fn commands(input: &[u8], limits: &Limits) -> Vec<Command> {
    let (mut decoder, mut args, mut found, mut at) = (CommandDecoder::new(), ArgSpans::new(), Vec::new(), 0);
    args.plain_from = 0;
    while at < input.len() {
        let from = args.spans.len();
        at = match decoder.next(input, at, &mut args, limits) {
            Ok(Step::Command { end }) => {
                let words: Vec<Vec<u8>> = (from..args.spans.len())
                    .map(|index| match args.get(index, input) {
                        Place::Bytes(bytes) => bytes.to_vec(),
                        Place::Big(_) => unreachable!("nothing is big"),
                    })
                    .collect();
                let first = args.spans[from].in_input();
                let is_plain = first.is_some_and(|(first, _)| first >= args.plain_from);
                found.push(Command { args: words, sent: input[at..end].to_vec(), is_plain });
                end
            }
            Ok(Step::Skip { end }) => end,
            Ok(Step::Incomplete | Step::Big { .. }) | Err(_) => break,
        };
    }
    found
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let argument = prop_oneof![vec(any::<u8>(), 0..8), vec(b'a'..=b'c', 9..130), Just(vec![b'x'; 1_000])];
    let command = vec(argument, 1..13).prop_map(|args| array(&args));
    let other = prop_oneof![Just("GET k\r\n"), Just("\r\n"), Just("*0\r\n"), Just("SET \"k\" '$1\r\n'\r\n")];
    let piece = prop_oneof![4 => command, 1 => other.prop_map(|text| text.as_bytes().to_vec())];
    vec(piece, 1..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_said_to_be_plain_is_so(
        mut input in stream(),
        changes in vec((any::<prop::sample::Index>(), prop::sample::select(b"\r\nx01$* ".to_vec())), 0..3),
    ) {
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        // So low a limit has everything read in the careful way.
        let careful = Limits { big_min: usize::MAX, bulk_len_max: 999_998, ..Limits::default() };
        let quick = Limits { big_min: usize::MAX, ..Limits::default() };
        let (found, expected) = (commands(&input, &quick), commands(&input, &careful));
        let read = |all: &[Command]| -> Vec<_> {
            all.iter().map(|command| (command.args.clone(), command.sent.clone())).collect()
        };
        prop_assert_eq!(read(&found), read(&expected));
        prop_assert!(expected.iter().all(|command| !command.is_plain));
        for command in &found {
            // And what is so is said to be, so that nobody has to look.
            prop_assert_eq!(command.is_plain, command.sent == array(&command.args));
        }
    }
}

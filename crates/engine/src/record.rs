//! One record of the log while it is written: commands in RESP, as a worker's command puts them down. Knows no command,
//! no key and no file.
//!
//! ```text
//! SET k v                                                one command in database 0 stands alone
//! MULTI, SELECT 3, SET k v, SELECT 0, EXEC               of another database: who reads it is in database 0 again
//! MULTI, DEL k, #TENON:FLAGS 7, SET k v, EXEC            several are one, and a torn one is an open MULTI
//! #TENON:WITHHELD, SELECT 0                              something was written here that the log does not have
//! ```
//!
//! A line that begins with `#` says of the next command what no command of Redis can say; Redis passes over it.

use crate::args::Args;
use crate::string::{self, Text};
use tenon_store::entry::ValueRef;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";
/// What stands, behind the `#`, before memcached's client flags of the value that the next command stores.
pub(crate) const FLAGS_ANNOTATION: &[u8] = b"TENON:FLAGS ";
/// What stands, behind the `#`, where a script has withheld what it has written, or other data has taken the place of what the log
/// has led to: what follows may not find what it ran on.
pub(crate) const WITHHELD_ANNOTATION: &[u8] = b"TENON:WITHHELD";
/// Buffers that have grown beyond this are not kept, in bytes.
const KEPT_MAX: usize = 1 << 20;

/// A word of a command that is put down.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    /// Bytes as they are.
    Bytes(&'a [u8]),
    /// A number in decimal.
    Int(i64),
    /// A number without a sign in decimal.
    Unsigned(u64),
    /// A string on its way into the store.
    Text(&'a Text<'a>),
    /// A string that is stored.
    Value(ValueRef<'a>),
}

impl<'a> From<&'a [u8]> for Word<'a> {
    fn from(bytes: &'a [u8]) -> Word<'a> {
        Word::Bytes(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Word<'a> {
    fn from(bytes: &'a [u8; N]) -> Word<'a> {
        Word::Bytes(bytes)
    }
}

impl<'a> From<&'a str> for Word<'a> {
    fn from(text: &'a str) -> Word<'a> {
        Word::Bytes(text.as_bytes())
    }
}

impl From<i64> for Word<'_> {
    fn from(number: i64) -> Self {
        Word::Int(number)
    }
}

impl From<u64> for Word<'_> {
    fn from(number: u64) -> Self {
        Word::Unsigned(number)
    }
}

impl Word<'_> {
    fn write(self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        match self {
            Word::Bytes(bytes) => write_bulk(out, bytes),
            Word::Int(number) => write_bulk(out, digits.format(number).as_bytes()),
            Word::Unsigned(number) => write_bulk(out, digits.format(number).as_bytes()),
            Word::Text(text) => {
                write_header(out, b'$', text.len());
                text.for_each_slice(|slice| out.extend_from_slice(slice));
                out.extend_from_slice(b"\r\n");
            }
            Word::Value(value) => {
                write_header(out, b'$', string::len(value));
                string::for_each_slice(value, |slice| out.extend_from_slice(slice));
                out.extend_from_slice(b"\r\n");
            }
        }
    }
}

#[inline]
fn write_header(out: &mut Vec<u8>, kind: u8, count: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn write_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    write_header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Writes a command down by this name.
fn write_args(out: &mut Vec<u8>, name: &[u8], args: &Args<'_>) {
    let len: usize = (0..args.len()).map(|index| args.len_of(index)).sum();
    out.reserve(len + 16 * (args.len() + 1));
    write_header(out, b'*', args.len());
    write_bulk(out, name);
    for index in 1..args.len() {
        match args.big(index) {
            Some(big) => {
                write_header(out, b'$', big.len());
                big.for_each_slice(|slice| out.extend_from_slice(slice));
                out.extend_from_slice(b"\r\n");
            }
            None => write_bulk(out, args.get(index)),
        }
    }
}

fn write_select(out: &mut Vec<u8>, database: usize) {
    write_header(out, b'*', 2);
    write_bulk(out, b"SELECT");
    write_bulk(out, itoa::Buffer::new().format(database).as_bytes());
}

/// What a worker's command, transaction or script has put down so far.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// MULTI, which is left out where one command stands alone, and the commands.
    bytes: Vec<u8>,
    /// How many commands, SELECT counted.
    commands: usize,
    /// The database that the commands so far have led to.
    database: usize,
    /// The attachment that they are for.
    number: u64,
    /// How many transactions and scripts, one in another, are under way that make one record.
    holds: u32,
    /// The attachment in force when the outermost of them began; 0: none.
    unit_number: u64,
    /// Whether they may have the log begin and end: the record is then for whoever takes it at their end.
    follows_switches: bool,
    /// Whether nothing is put down: a log is read back.
    muted: bool,
    /// Whether what commands do is not put down, as the script that calls them has it. What has expired is: it is gone
    /// for the commands that come after, too.
    withheld: bool,
    /// Whether a command has changed something meanwhile.
    omits: bool,
    /// Whether it says already that it lacks something.
    says_omission: bool,
    /// A command whose long arguments are taken away when it runs, written down before.
    prepared: Vec<u8>,
    /// Whether anybody took records when the last command with long arguments was looked at.
    saw_journal: bool,
}

impl Record {
    /// Whether there is nothing in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.commands == 0
    }

    /// Whether what is put down next is the first of it, and all that there will be.
    #[inline]
    pub(crate) fn is_to_be_one_command(&self) -> bool {
        // One branch for what is almost always so. An annotation stands behind MULTI.
        let under_way =
            self.commands | self.holds as usize | usize::from(self.muted | self.withheld) | self.prepared.len();
        under_way == 0 && self.bytes.len() <= MULTI.len()
    }

    /// Whether it is to be appended.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.commands > 0 && self.holds == 0
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it is of a transaction or a script, which may go on.
    pub(crate) fn is_in_unit(&self) -> bool {
        self.holds > 0
    }

    /// Begins a transaction or a script; `number` is the attachment in force.
    pub(crate) fn hold(&mut self, number: u64) {
        if self.holds == 0 {
            self.unit_number = number;
        }
        self.holds += 1;
    }

    /// Says that a transaction or script has held no shard so far, and what it does is of this attachment from now on.
    pub(crate) fn hold_from_here(&mut self, number: u64) {
        if self.holds == 1 {
            self.unit_number = number;
        }
    }

    /// Whether the transaction that has just begun, or ended, may have the log begin and end in its middle.
    pub(crate) fn follow_switches(&mut self, follows: bool) {
        self.follows_switches = follows;
    }

    pub(crate) fn follows_switches(&self) -> bool {
        self.follows_switches
    }

    pub(crate) fn release(&mut self) {
        self.holds -= 1;
    }

    /// Puts nothing down from now on, or does so again; gives whether it did not before.
    pub(crate) fn mute(&mut self, muted: bool) -> bool {
        std::mem::replace(&mut self.muted, muted)
    }

    /// Withholds what commands do from now on, or does so no more; gives whether it did before.
    pub(crate) fn withhold(&mut self, withheld: bool) -> bool {
        std::mem::replace(&mut self.withheld, withheld)
    }

    /// Notes that something is missing which was no command's doing.
    pub(crate) fn omit(&mut self) {
        self.omits = true;
    }

    /// Says, once, that what commands did meanwhile is missing, if they did anything: whoever runs the log again then knows
    /// why a command may fail. `number` is the attachment in force.
    pub(crate) fn end_withholding(&mut self, number: u64, database: usize) {
        self.withheld = false;
        if std::mem::take(&mut self.omits) && !self.says_omission && self.begin(number, database) {
            self.says_omission = true;
            self.bytes.push(b'#');
            self.bytes.extend_from_slice(WITHHELD_ANNOTATION);
            self.bytes.extend_from_slice(b"\r\n");
            // What is said stands in front of a command.
            write_select(&mut self.bytes, database);
            self.commands += 1;
        }
    }

    pub(crate) fn is_muted(&self) -> bool {
        self.muted
    }

    /// Is muted as another one is.
    pub(crate) fn follow(&mut self, other: &Record) {
        self.muted = other.muted;
    }

    /// Makes ready for a command of a database; tells whether it is to be put down at all.
    pub(crate) fn begin(&mut self, number: u64, database: usize) -> bool {
        if self.muted || number == 0 {
            return false;
        }
        if self.withheld {
            self.omits = true;
            return false;
        }
        if self.follows_switches {
            self.number = number;
        } else if self.holds > 0 && self.unit_number != number {
            // Somebody else has had the log begin meanwhile: of a transaction it has all or nothing.
            return false;
        } else if self.number != number {
            // What was put down for a journal that is gone meanwhile.
            self.clear();
            self.number = number;
        }
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(MULTI);
        }
        if self.database != database {
            write_select(&mut self.bytes, database);
            self.database = database;
            self.commands += 1;
        }
        true
    }

    /// Adds a command of these words. `begin` was called for it.
    pub(crate) fn command(&mut self, words: &[Word<'_>]) {
        write_header(&mut self.bytes, b'*', words.len());
        words.iter().for_each(|word| word.write(&mut self.bytes));
        self.commands += 1;
    }

    /// Adds a command of words that are followed by others.
    pub(crate) fn command_of<'w>(&mut self, words: &[Word<'_>], rest: impl ExactSizeIterator<Item = Word<'w>>) {
        write_header(&mut self.bytes, b'*', words.len() + rest.len());
        words.iter().for_each(|word| word.write(&mut self.bytes));
        rest.for_each(|word| word.write(&mut self.bytes));
        self.commands += 1;
    }

    /// Says of the next command that the value which it stores has these client flags.
    pub(crate) fn annotate_flags(&mut self, flags: u32) {
        if flags != 0 {
            self.bytes.push(b'#');
            self.bytes.extend_from_slice(FLAGS_ANNOTATION);
            self.bytes.extend_from_slice(itoa::Buffer::new().format(flags).as_bytes());
            self.bytes.extend_from_slice(b"\r\n");
        }
    }

    /// Notes of a command with long arguments, before it runs, whether anybody takes records.
    pub(crate) fn look_for_journal(&mut self, is_there: bool) {
        self.prepared.clear();
        self.saw_journal = is_there;
    }

    /// Whether anybody took records when the command with long arguments that runs was looked at.
    pub(crate) fn saw_journal(&self) -> bool {
        self.saw_journal
    }

    /// Writes a command of this name down that may take its long arguments away.
    pub(crate) fn prepare(&mut self, name: &[u8], args: &Args<'_>) {
        self.prepared.clear();
        if !self.muted && !self.withheld {
            self.prepared.extend_from_slice(MULTI);
            write_args(&mut self.prepared, name, args);
        }
    }

    /// Forgets what was prepared for a command that has run.
    #[inline]
    pub(crate) fn forget_prepared(&mut self) {
        if self.prepared.capacity() > 0 {
            self.prepared = Vec::new();
        }
    }

    /// Adds a command as it came, by this name. `begin` was called for it.
    pub(crate) fn verbatim(&mut self, name: &[u8], args: &Args<'_>) {
        if self.prepared.is_empty() {
            write_args(&mut self.bytes, name, args);
        } else if self.commands == 0 {
            // It is the first: what was written before becomes the record and is not copied once more.
            self.bytes = std::mem::take(&mut self.prepared);
        } else {
            self.bytes.extend_from_slice(&self.prepared[MULTI.len()..]);
        }
        self.commands += 1;
    }

    /// Ends the record; gives its bytes.
    pub(crate) fn finish(&mut self) -> &[u8] {
        if self.database != 0 {
            write_select(&mut self.bytes, 0);
            self.database = 0;
        }
        if self.commands == 1 {
            return &self.bytes[MULTI.len()..];
        }
        self.bytes.extend_from_slice(EXEC);
        &self.bytes
    }

    /// Forgets what was put down.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEPT_MAX {
            self.bytes = Vec::new();
        }
        self.commands = 0;
        self.database = 0;
        self.says_omission = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{BigArg, OwnedArgs};
    use tenon_store::types::Rope;
    use tenon_wire::Span;

    fn set(record: &mut Record, database: usize) {
        assert!(record.begin(1, database));
        record.command(&["SET".into(), "k".into(), 7i64.into()]);
    }

    const SET: &str = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n7\r\n";

    fn select(database: usize) -> String {
        format!("*2\r\n$6\r\nSELECT\r\n$1\r\n{database}\r\n")
    }

    fn text(record: &mut Record) -> String {
        let text = String::from_utf8(record.finish().to_vec()).expect("it is text");
        record.clear();
        assert!(record.is_empty());
        text
    }

    #[test]
    fn one_command_stands_alone_and_several_are_whole() {
        let (multi, exec) = (String::from_utf8_lossy(MULTI), String::from_utf8_lossy(EXEC));
        let mut record = Record::default();
        set(&mut record, 0);
        assert_eq!(text(&mut record), SET);
        set(&mut record, 0);
        set(&mut record, 0);
        assert_eq!(text(&mut record), format!("{multi}{SET}{SET}{exec}"));
        set(&mut record, 3);
        assert_eq!(text(&mut record), format!("{multi}{}{SET}{}{exec}", select(3), select(0)));
        // One that ends in database 0 by itself.
        set(&mut record, 3);
        set(&mut record, 0);
        assert_eq!(text(&mut record), format!("{multi}{}{SET}{}{SET}{exec}", select(3), select(0)));
        assert!(record.begin(1, 0));
        record.annotate_flags(0);
        record.annotate_flags(u32::MAX);
        record.command(&["PING".into()]);
        assert_eq!(text(&mut record), "#TENON:FLAGS 4294967295\r\n*1\r\n$4\r\nPING\r\n");
    }

    #[test]
    fn what_was_put_down_for_another_journal_is_forgotten() {
        let mut record = Record::default();
        set(&mut record, 3);
        assert!(record.begin(2, 0));
        record.command(&["PING".into()]);
        assert_eq!(text(&mut record), "*1\r\n$4\r\nPING\r\n");
        assert!(!record.begin(0, 0), "nobody takes it");
        record.mute(true);
        assert!(!record.begin(2, 0), "a log is read back");
    }

    #[test]
    fn long_arguments_are_written_before_they_are_taken() {
        let long = vec![b'x'; 700_000];
        let bigs = [BigArg::new(Rope::from(&long[..]))];
        let spans = [Span::bytes(0, 3), Span::bytes(3, 1), Span::big(0)];
        let args = Args::new(&spans, b"SETk", &[], &bigs);
        let expected = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$700000\r\n", &long[..], b"\r\n"].concat();
        for before in [0, 1] {
            let mut record = Record::default();
            (0..before).for_each(|_| set(&mut record, 0));
            record.prepare(args.get(0), &args);
            assert!(record.begin(1, 0));
            record.verbatim(args.get(0), &args);
            record.forget_prepared();
            let whole = record.finish();
            assert!(whole.windows(expected.len()).any(|window| window == expected), "{before}");
            assert_eq!(whole == expected, before == 0);
        }
        assert_eq!(bigs[0].take().len(), long.len());
    }

    #[test]
    fn a_large_record_s_memory_is_let_go() {
        let mut record = Record::default();
        let long = vec![b'x'; 2 * KEPT_MAX];
        assert!(record.begin(1, 0));
        record.verbatim(b"SET", &OwnedArgs::new([&b"SET"[..], b"k", &long]).view());
        record.clear();
        assert_eq!(record.bytes.capacity(), 0);
    }
}

//! LCS: the longest common subsequence of two strings.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, Keys, Run};
use tenon_engine::context::KeysCx;
use tenon_engine::ds::progress;
use tenon_engine::errors::CmdError;
use tenon_engine::string;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// Finds what two strings have in common.
pub static LCS: Command = Command {
    name: "LCS",
    group: Group::String,
    syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
    summary: "Finds the longest common substring.",
    complexity: "O(N*M) where N and M are the lengths of s1 and s2, respectively",
    since: "7.0.0",
    arity: Arity::AtLeast(3),
    keys: Keys::TWO,
    flags: Flags::READONLY,
    run: Run::Keys(lcs),
};

/// The options of LCS.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    length: bool,
    indexes: bool,
    with_match_len: bool,
    match_len_min: i64,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options::default();
        let mut at = 3;
        while at < args.len() {
            if args.is(at, "IDX") {
                options.indexes = true;
            } else if args.is(at, "LEN") {
                options.length = true;
            } else if args.is(at, "WITHMATCHLEN") {
                options.with_match_len = true;
            } else if args.is(at, "MINMATCHLEN") && at + 1 < args.len() {
                at += 1;
                options.match_len_min = parse_i64(args.get(at)).ok_or(CmdError::NotInteger)?.max(0);
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        if options.length && options.indexes {
            return Err(CmdError::text("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(options)
    }
}

fn lcs(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Effect, CmdError> {
    // Both are looked up, whatever the first one holds.
    let lens = [1, 2].map(|index| cx.key(args.get(index)).read_string().map(|value| value.map_or(0, string::len)));
    let [Ok(a), Ok(b)] = lens else {
        return Err(CmdError::text("ERR The specified keys must contain string values"));
    };
    let lens = [a, b];
    // Redis looks at the keys before it looks at the options.
    let options = Options::parse(args)?;
    // Before anything of these lengths is allocated.
    check_memory(lens, cx.engine().config.proto_max_bulk_len())?;
    // Nor is anything before others go on beside it, where it is long, and know that what it takes is no data.
    progress::count(a.saturating_mul(steps_of_row(b)));
    progress::count_bytes(a + b);
    let table_bytes = if options.length { 0 } else { (a + 1) * (b + 1) * size_of::<u32>() };
    progress::will_take(a + b + table_bytes);
    let [a, b] = [1, 2].map(|index| {
        let mut key = cx.key(args.get(index));
        let slot = key.find();
        slot.and_then(|slot| key.string(slot).ok()).map_or_else(Vec::new, string::to_vec)
    });
    cx.let_go();
    if options.length {
        reply.int(length(&a, &b)?.into());
        return Ok(Effect::Unchanged);
    }
    let table = Table::new(&a, &b)?;
    if !options.indexes {
        reply.bulk(&table.text());
        return Ok(Effect::Unchanged);
    }
    let mut matches = table.matches();
    matches.retain(|one| i64::from(one.len) >= options.match_len_min);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(matches.len());
    for one in matches {
        reply.array(if options.with_match_len { 3 } else { 2 });
        for start in [one.a, one.b] {
            reply.array(2);
            reply.int(start.into());
            reply.int(i64::from(start + one.len) - 1);
        }
        if options.with_match_len {
            reply.int(one.len.into());
        }
    }
    reply.bulk(b"len");
    reply.int(table.at(a.len(), b.len()).into());
    Ok(Effect::Unchanged)
}

/// Checks that the table for strings of these lengths, in bytes, may be made.
///
/// LEN needs two rows of it only, but is refused where Redis refuses it.
fn check_memory(lens: [usize; 2], bytes_max: u64) -> Result<(), CmdError> {
    if lens.iter().any(|&len| len >= u32::MAX as usize - 1) {
        return Err(CmdError::text("ERR String too long for LCS"));
    }
    let cells = (lens[0] as u128 + 1) * (lens[1] as u128 + 1);
    if cells * size_of::<u32>() as u128 > u128::from(bytes_max) {
        return Err(CmdError::text("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"));
    }
    Ok(())
}

/// Steps of work that a row of the table for a second string of this length takes.
fn steps_of_row(len: usize) -> usize {
    const STEP_CELLS: usize = 256;
    1 + len / STEP_CELLS
}

/// Counts the work of a row of the table.
fn count_row(b: &[u8]) {
    progress::count(steps_of_row(b.len()));
}

/// Length of the longest common subsequence, with memory for one row of the table.
fn length(a: &[u8], b: &[u8]) -> Result<u32, CmdError> {
    let mut row = zeros(b.len() + 1)?;
    for &byte in a {
        count_row(b);
        let mut diagonal = 0;
        for (column, &other) in b.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] = if byte == other { diagonal + 1 } else { above.max(row[column]) };
            diagonal = above;
        }
    }
    Ok(row[b.len()])
}

/// So many cells. Those of `vec![0; len]` would be of fresh pages each time, however many are kept.
fn zeros(len: usize) -> Result<Vec<u32>, CmdError> {
    let mut cells = Vec::new();
    if cells.try_reserve_exact(len).is_err() {
        return Err(CmdError::text("ERR Insufficient memory, failed allocating transient memory for LCS"));
    }
    cells.resize(len, 0);
    Ok(cells)
}

/// A stretch that both strings have, part of the subsequence: where it starts in each, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    a: u32,
    b: u32,
    len: u32,
}

/// The lengths of the longest common subsequences of all beginnings of two strings.
struct Table<'a> {
    a: &'a [u8],
    b: &'a [u8],
    cells: Vec<u32>,
}

impl<'a> Table<'a> {
    fn new(a: &'a [u8], b: &'a [u8]) -> Result<Table<'a>, CmdError> {
        let width = b.len() + 1;
        let mut cells = zeros((a.len() + 1) * width)?;
        for (i, &byte) in a.iter().enumerate() {
            count_row(b);
            let (above, row) = cells[i * width..(i + 2) * width].split_at_mut(width);
            for (j, &other) in b.iter().enumerate() {
                row[j + 1] = if byte == other { above[j] + 1 } else { above[j + 1].max(row[j]) };
            }
        }
        Ok(Table { a, b, cells })
    }

    /// The length for the first `i` and `j` bytes.
    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * (self.b.len() + 1) + j]
    }

    /// Calls `visit` with the positions of the subsequence's bytes, from the last to the first, in the order in which
    /// Redis chooses among subsequences of the same length.
    fn walk(&self, mut visit: impl FnMut(usize, usize)) {
        let (mut i, mut j) = (self.a.len(), self.b.len());
        while i > 0 && j > 0 {
            if self.a[i - 1] == self.b[j - 1] {
                i -= 1;
                j -= 1;
                visit(i, j);
            } else if self.at(i - 1, j) > self.at(i, j - 1) {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }

    /// The subsequence.
    fn text(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.at(self.a.len(), self.b.len()) as usize);
        self.walk(|i, _| text.push(self.a[i]));
        text.reverse();
        text
    }

    /// The stretches that the subsequence is made of, from the last to the first.
    fn matches(&self) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        self.walk(|i, j| {
            let (i, j) = (i as u32, j as u32);
            match matches.last_mut() {
                Some(last) if last.a == i + 1 && last.b == j + 1 => *last = Match { a: i, b: j, len: last.len + 1 },
                _ => matches.push(Match { a: i, b: j, len: 1 }),
            }
        });
        matches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_common() {
        for (a, b, common) in [
            ("ohmytext", "mynewtext", "mytext"),
            ("rnatagatgtaa", "gattacarna", "gattaa"),
            ("", "x", ""),
            ("abc", "abc", "abc"),
            ("abc", "xyz", ""),
        ] {
            let table = Table::new(a.as_bytes(), b.as_bytes()).unwrap();
            assert_eq!(table.text(), common.as_bytes());
            assert_eq!(length(a.as_bytes(), b.as_bytes()).unwrap() as usize, common.len());
            let matches = table.matches();
            assert_eq!(matches.iter().map(|one| one.len as usize).sum::<usize>(), common.len());
            for one in matches {
                let len = one.len as usize;
                assert_eq!(a[one.a as usize..][..len], b[one.b as usize..][..len]);
            }
        }
    }

    #[test]
    fn refuses_tables_over_the_limit() {
        const LIMIT: u64 = 1 << 20;
        assert_eq!(check_memory([511, 511], LIMIT), Ok(()));
        for lens in [[511, 512], [0, LIMIT as usize / 4], [u32::MAX as usize, 0], [u32::MAX as usize - 2; 2]] {
            assert!(check_memory(lens, LIMIT).is_err(), "{lens:?}");
        }
    }
}

//! The options of SORT. Knows no data.

use super::pattern::{KeyPattern, Pattern};
use tenon_engine::args::Args;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::number::parse_i64;

/// Whether the result may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storing {
    /// With STORE.
    Allowed,
    /// Never (SORT_RO).
    Refused,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    Client,
    Script,
}

/// What elements are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By<'a> {
    /// Themselves.
    Themselves,
    /// What the pattern names for each of them.
    Pattern(Pattern<'a>),
    /// Nothing: a pattern without an asterisk, which holds whatever other pattern there is.
    Nothing,
}

/// The options as they were given.
#[derive(Debug, PartialEq)]
pub(super) struct Options<'a> {
    pub(super) caller: Caller,
    pub(super) by: By<'a>,
    pub(super) gets: Vec<Pattern<'a>>,
    /// Offset and count; a negative count is all.
    pub(super) limit: Option<(i64, i64)>,
    pub(super) alpha: bool,
    pub(super) descending: bool,
    pub(super) store: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    /// Reads the options behind the key.
    pub(super) fn parse(
        args: &Args<'a>,
        storing: Storing,
        caller: Caller,
        may_read_all_keys: bool,
    ) -> Result<Options<'a>, CmdError> {
        let mut options = Options {
            caller,
            by: By::Themselves,
            gets: Vec::new(),
            limit: None,
            alpha: false,
            descending: false,
            store: None,
        };
        let mut at = 2;
        while at < args.len() {
            let left = args.len() - at - 1;
            if args.is(at, "ASC") {
                options.descending = false;
            } else if args.is(at, "DESC") {
                options.descending = true;
            } else if args.is(at, "ALPHA") {
                options.alpha = true;
            } else if args.is(at, "LIMIT") && left >= 2 {
                let number = |index| parse_i64(args.get(index)).ok_or(CmdError::NotInteger);
                options.limit = Some((number(at + 1)?, number(at + 2)?));
                at += 2;
            } else if storing == Storing::Allowed && args.is(at, "STORE") && left >= 1 {
                at += 1;
                options.store = Some(args.get(at));
            } else if args.is(at, "BY") && left >= 1 {
                at += 1;
                let pattern = Pattern::of(args.get(at));
                options.by = match options.by {
                    By::Themselves | By::Pattern(_) if pattern.keys().is_some() => By::Pattern(pattern),
                    _ => By::Nothing,
                };
                if pattern.keys().is_some() && !may_read_all_keys {
                    return Err(CmdError::text("ERR BY option of SORT denied due to insufficient ACL permissions."));
                }
            } else if args.is(at, "GET") && left >= 1 {
                at += 1;
                if !may_read_all_keys {
                    return Err(CmdError::text("ERR GET option of SORT denied due to insufficient ACL permissions."));
                }
                options.gets.push(Pattern::of(args.get(at)));
            } else {
                return Err(CmdError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }

    /// The further keys that are named, each once.
    pub(super) fn named_keys(&self) -> Vec<KeyPattern<'a>> {
        let by = if let By::Pattern(pattern) = &self.by { Some(pattern) } else { None };
        let mut named: Vec<_> = by.into_iter().chain(&self.gets).filter_map(Pattern::keys).collect();
        named.sort_unstable();
        named.dedup();
        named
    }

    /// Whether no key is wanted any more once the elements and what they are sorted by are known.
    pub(super) fn is_done_with_keys(&self) -> bool {
        self.store.is_none() && self.gets.iter().all(|pattern| pattern.keys().is_none())
    }

    /// Which of `len` elements are wanted.
    pub(super) fn range(&self, len: usize) -> std::ops::Range<usize> {
        let (offset, count) = self.limit.unwrap_or((0, -1));
        let start = usize::try_from(offset).unwrap_or(0).min(len);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        start..start.saturating_add(count).min(len)
    }
}

//! The options that XADD and XTRIM share: how the oldest entries go. Knows no stream.

use super::id::{NewId, parse_id, parse_new_id};
use super::producers::ProducerArgs;
use super::references::{parse_references, word_of};
use tenon_engine::Engine;
use tenon_engine::args::Args;
use tenon_engine::context::Word;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::stream::{Keep, Reach, References, Trim};
use tenon_engine::wire::resp::number::parse_i64;

const TWO_STRATEGIES: CmdError =
    CmdError::text("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
const NEGATIVE_MAXLEN: CmdError = CmdError::text("ERR The MAXLEN argument must be >= 0.");
const NEGATIVE_LIMIT: CmdError = CmdError::text("ERR The LIMIT argument must be >= 0.");
const LIMIT_ALONE: CmdError =
    CmdError::text("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
const LIMIT_EXACT: CmdError = CmdError::text("ERR syntax error, LIMIT cannot be used without the special ~ option");
const NO_ID_OF_ITS_OWN: CmdError =
    CmdError::text("ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs");
const NO_STRATEGY: CmdError = CmdError::text("ERR syntax error, XTRIM must be called with a trimming strategy");

/// Blocks that approximate trimming takes at most when the client does not say.
const BLOCKS_DEFAULT: u64 = 100;
/// Entries likewise where blocks have no limit, and the most in any case.
const ENTRIES_UNLIMITED: u64 = 10_000;
const ENTRIES_MAX: u64 = 1_000_000;

/// How the oldest entries go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trimming {
    pub(super) trim: Trim,
    pub(super) references: References,
}

/// What XADD is asked for beside its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddArgs {
    pub(super) id: NewId,
    /// Which argument is the first field.
    pub(super) fields_at: usize,
    /// Whether the stream is made if it is not there.
    pub(super) makes_stream: bool,
    pub(super) producer: Option<ProducerArgs>,
    pub(super) trimming: Option<Trimming>,
}

/// What trimming has come to, in words that trim a stream by as much again, whatever its blocks are: the oldest entries go
/// that may, until so many are left.
pub(super) fn words_of_trim<'a>(trimming: Trimming, count_left: u64) -> impl Iterator<Item = Word<'a>> {
    let exactly = ["MAXLEN".into(), "=".into(), count_left.into()];
    exactly.into_iter().chain(word_of(trimming.references).map(Word::from))
}

/// Options as far as they are read.
#[derive(Default)]
struct Options {
    keep: Option<Keep>,
    is_approximate: bool,
    limit: Option<u64>,
    references: Option<References>,
}

impl Options {
    /// Reads the option at argument `at`; gives where the next one is, or nothing when it is none.
    fn read(&mut self, args: &Args<'_>, at: usize) -> Result<Option<usize>, CmdError> {
        let has_value = at + 1 < args.len();
        if has_value && (args.is(at, "MAXLEN") || args.is(at, "MINID")) {
            if self.keep.is_some() {
                return Err(TWO_STRATEGIES);
            }
            let has_sign = at + 2 < args.len() && matches!(args.get(at + 1), b"~" | b"=");
            self.is_approximate = has_sign && args.get(at + 1) == b"~";
            let value_at = at + 1 + usize::from(has_sign);
            let value = args.get(value_at);
            self.keep = Some(if args.is(at, "MAXLEN") {
                let count = parse_i64(value).ok_or(CmdError::NotInteger)?;
                Keep::Newest(u64::try_from(count).map_err(|_| NEGATIVE_MAXLEN)?)
            } else {
                Keep::From(parse_id(value, 0)?)
            });
            return Ok(Some(value_at + 1));
        }
        if has_value && args.is(at, "LIMIT") {
            let limit = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
            self.limit = Some(u64::try_from(limit).map_err(|_| NEGATIVE_LIMIT)?);
            return Ok(Some(at + 2));
        }
        // A second one is none of the options: to XADD it is an id, and no good one.
        if let Some(references) = parse_references(args, at).filter(|_| self.references.is_none()) {
            self.references = Some(references);
            return Ok(Some(at + 1));
        }
        Ok(None)
    }

    fn finish(self, engine: &Engine) -> Result<Option<Trimming>, CmdError> {
        if self.keep.is_none() && self.limit.is_some_and(|limit| limit > 0) {
            return Err(LIMIT_ALONE);
        }
        if self.limit.is_some() && !self.is_approximate {
            return Err(LIMIT_EXACT);
        }
        let references = self.references.unwrap_or(References::Keep);
        let reach = if self.is_approximate {
            let entries_max = self.limit.unwrap_or_else(|| match engine.config.stream_node_max_entries() {
                0 => ENTRIES_UNLIMITED,
                entries => entries.saturating_mul(BLOCKS_DEFAULT).min(ENTRIES_MAX),
            });
            Reach::WholeBlocks { entries_max }
        } else {
            Reach::Exact
        };
        Ok(self.keep.map(|keep| Trimming { trim: Trim { keep, reach }, references }))
    }
}

/// Reads the options of XADD and the id. In a log an entry that has an id of its producer's has its own, too.
///
/// # Errors
/// When they make no sense.
pub(super) fn parse_add(args: &Args<'_>, engine: &Engine, is_replaying: bool) -> Result<AddArgs, CmdError> {
    let mut options = Options::default();
    let (mut id, mut makes_stream, mut producer) = (None, true, None);
    let mut at = 2;
    while at < args.len() && id.is_none() {
        // An id may look like no option does, and options come first.
        at = match options.read(args, at)? {
            Some(next) => next,
            None => {
                if args.is(at, "NOMKSTREAM") {
                    makes_stream = false;
                    at + 1
                } else if let Some((found, next)) = ProducerArgs::read(args, at, producer)? {
                    producer = Some(found);
                    next
                } else {
                    let wanted = parse_new_id(args.get(at))?;
                    if producer.is_some() && wanted != NewId::Next && !is_replaying {
                        return Err(NO_ID_OF_ITS_OWN);
                    }
                    id = Some(wanted);
                    at + 1
                }
            }
        };
    }
    let trimming = options.finish(engine)?;
    let fields = args.len() - at;
    match id {
        Some(id) if fields > 0 && fields.is_multiple_of(2) => {
            Ok(AddArgs { id, fields_at: at, makes_stream, producer, trimming })
        }
        _ => Err(CmdError::Arity("xadd".to_owned())),
    }
}

/// Reads the options of XTRIM.
///
/// # Errors
/// When they make no sense.
pub(super) fn parse_trim(args: &Args<'_>, engine: &Engine) -> Result<Trimming, CmdError> {
    let mut options = Options::default();
    let mut at = 2;
    while at < args.len() {
        at = options.read(args, at)?.ok_or(CmdError::Syntax)?;
    }
    if options.keep.is_none() && options.limit.is_none_or(|limit| limit == 0) {
        return Err(NO_STRATEGY);
    }
    options.finish(engine)?.ok_or(NO_STRATEGY)
}

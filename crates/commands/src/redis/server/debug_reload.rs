//! DEBUG RELOAD and DEBUG LOADAOF: the data goes and comes again from the snapshot file, or from the log.

use std::path::Path;
use std::time::Duration;
use tenon_engine::args::Args;
use tenon_engine::context::ServerCx;
use tenon_engine::errors::CmdError;
use tenon_engine::loading::{Before, LoadError, OnDuplicate};
use tenon_engine::wire::resp::Reply;

/// How long the log may take to be on disk.
const SYNC_MAX: Duration = Duration::from_secs(60);

/// What is said of LOADAOF by DEBUG HELP.
pub(super) const LOADAOF_HELP: &[&str] =
    &["LOADAOF", "    Flush the AOF buffers on disk and reload the AOF in memory."];

/// What is said of RELOAD by DEBUG HELP.
pub(super) const HELP: &[&str] = &[
    "RELOAD [option ...]",
    "    Save the RDB on disk and reload it back to memory. Valid <option> values:",
    "    * MERGE: conflicting keys will be loaded from RDB.",
    "    * NOFLUSH: the existing database will not be removed before load, but",
    "      conflicting keys will generate an exception and kill the server.",
    "    * NOSAVE: the database will be loaded from an existing RDB file.",
    "    Examples:",
    "    * DEBUG RELOAD: verify that the server is able to persist, flush and reload",
    "      the database.",
    "    * DEBUG RELOAD NOSAVE: replace the current database with the contents of an",
    "      existing RDB file.",
    "    * DEBUG RELOAD NOSAVE NOFLUSH MERGE: add the contents of an existing RDB",
    "      file to the database.",
];

/// What stands behind RELOAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    saves: bool,
    flushes: bool,
    merges: bool,
}

impl Options {
    fn parse(args: &Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options { saves: true, flushes: true, merges: false };
        for at in 2..args.len() {
            if args.is(at, "MERGE") {
                options.merges = true;
            } else if args.is(at, "NOFLUSH") {
                options.flushes = false;
            } else if args.is(at, "NOSAVE") {
                options.saves = false;
            } else {
                return Err(CmdError::text("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
            }
        }
        Ok(options)
    }

    /// What becomes of the data that is there. Redis ends when a key is there twice; here the reload does.
    fn before(self) -> Before {
        match self {
            Options { flushes: true, .. } => Before::Flush,
            Options { merges: true, .. } => Before::Keep(OnDuplicate::Replace),
            Options { .. } => Before::Keep(OnDuplicate::Refuse),
        }
    }
}

/// What is there while data is loaded is no whole: to save it would lose the rest.
fn refuse_while_loading(cx: &ServerCx<'_>) -> Result<(), CmdError> {
    if cx.engine.is_loading() { Err(CmdError::Loading) } else { Ok(()) }
}

/// Loads the snapshot file once more.
pub(super) fn reload(cx: &mut ServerCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let options = Options::parse(args)?;
    if cx.holds_shards() {
        return Err(CmdError::text("ERR DEBUG RELOAD is not allowed within a transaction or a script"));
    }
    refuse_while_loading(cx)?;
    if options.saves
        && let Err(error) = cx.engine.save_now(cx.worker)
    {
        tracing::error!("DEBUG RELOAD cannot save: {error}");
        return Err(CmdError::text("ERR"));
    }
    // Where it is saved: `dir` may have been set to another one than the process works in.
    let path = Path::new(&*cx.engine.config.dir()).join(&*cx.engine.config.dbfilename());
    match cx.reload(&path, options.before()) {
        Ok(_) => {
            tracing::warn!("DB reloaded by DEBUG RELOAD");
            reply.simple("OK");
            Ok(())
        }
        Err(LoadError::UnderWay) => Err(CmdError::Loading),
        Err(error) => {
            tracing::error!("cannot load '{}': {error}", path.display());
            Err(CmdError::text("ERR Error trying to load the RDB dump, check server logs"))
        }
    }
}

/// Loads the log once more, also one that a rewrite has left without being gone on with.
pub(super) fn load_log(cx: &mut ServerCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    const FAILED: CmdError = CmdError::text("ERR Error trying to load the AOF files, check server logs");
    if cx.holds_shards() {
        return Err(CmdError::text("ERR DEBUG LOADAOF is not allowed within a transaction or a script"));
    }
    refuse_while_loading(cx)?;
    if !cx.engine.sync_aof(SYNC_MAX) {
        return Err(FAILED);
    }
    match cx.reload_log() {
        Ok(_) => {
            tracing::warn!("Append Only File loaded by DEBUG LOADAOF");
            reply.simple("OK");
            Ok(())
        }
        Err(LoadError::UnderWay) => Err(CmdError::Loading),
        Err(error) => {
            tracing::error!("cannot load the append-only file: {error}");
            Err(FAILED)
        }
    }
}

//! BGREWRITEAOF: a snapshot takes the place of the log so far. Knows neither file nor thread.

use tenon_engine::aof::RewriteStart;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

/// Rewrites the log in the background.
pub static BGREWRITEAOF: Command = Command {
    name: "BGREWRITEAOF",
    group: Group::Server,
    syntax: "",
    summary: "Asynchronously rewrites the append-only file to disk.",
    complexity: "O(1)",
    since: "1.0.0",
    arity: Arity::Exactly(1),
    keys: Keys::None,
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::NO_ASYNC_LOADING),
    run: Run::Session(bgrewriteaof),
};

fn bgrewriteaof(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    // The moment is taken on another thread, when EXEC has let its shards go.
    match cx.engine.rewrite_aof() {
        RewriteStart::Started => reply.simple("Background append only file rewriting started"),
        RewriteStart::Scheduled => reply.simple("Background append only file rewriting scheduled"),
        RewriteStart::UnderWay => {
            return Err(CmdError::text("ERR Background append only file rewriting already in progress"));
        }
        RewriteStart::Failed => {
            return Err(CmdError::text(
                "ERR Can't execute an AOF background rewriting. Please check the server logs for more information.",
            ));
        }
    }
    Ok(())
}

//! LOLWUT: a joint of wood, drawn, and the version.

use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::version;
use tenon_engine::wire::resp::Reply;
use tenon_engine::wire::resp::number::parse_i64;

/// The drawing that there is; other versions of it are the version line alone.
const DRAWING: i64 = 1;
/// Joints that fit a line.
const JOINTS_MAX: i64 = 6;

/// Draws something.
pub static LOLWUT: Command = Command {
    name: "LOLWUT",
    group: Group::Server,
    syntax: "[VERSION version] [joints]",
    summary: "Displays computer art and the server's version.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::AtLeast(1),
    keys: Keys::None,
    flags: Flags::READONLY.or(Flags::FAST),
    run: Run::Session(lolwut),
};

fn lolwut(_cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let number = |at: usize| parse_i64(args.get(at)).ok_or(CmdError::NotInteger);
    let with_version = args.len() > 2 && args.is(1, "VERSION");
    let drawing = if with_version { number(2)? } else { DRAWING };
    let joints_at = if with_version { 3 } else { 1 };
    let joints = if args.len() > joints_at { number(joints_at)?.clamp(1, JOINTS_MAX) } else { 1 };
    if args.len() > joints_at + 1 {
        return Err(CmdError::Syntax);
    }
    let art = if drawing == DRAWING { draw(joints as usize) } else { String::new() };
    let text = format!("{art}Tenon ver. {} (Redis ver. {})\n", version::TENON, version::REDIS);
    reply.verbatim(b"txt", text.as_bytes());
    Ok(())
}

/// A beam of so many tenons, each in its mortise.
fn draw(joints: usize) -> String {
    const JOINT: [&str; 7] = [
        "   |~~  ~|    ",
        "   |  ~  |    ",
        "___|_____|____",
        " ~ |#####| ~  ",
        "~  |#####|  ~ ",
        "---|-----|----",
        "   | ~  ~|    ",
    ];
    JOINT.iter().map(|row| row.repeat(joints).trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joints_stand_in_a_row() {
        assert_eq!(draw(3).lines().count(), draw(1).lines().count());
        assert_eq!(draw(3).matches("#####").count(), 3 * draw(1).matches("#####").count());
        assert!(draw(JOINTS_MAX as usize).lines().all(|line| line.len() <= 84));
    }
}

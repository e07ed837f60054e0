//! ACL LIST, USERS, WHOAMI and CAT: which users and categories there are.

use super::container::{ADMIN, ANYBODY};
use crate::redis::help::wrong_form;
use tenon_engine::acl::{CATEGORIES, category, user_line};
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::wire::resp::Reply;

/// Describes all users.
pub static LIST: Command = Command {
    name: "ACL LIST",
    group: Group::Server,
    syntax: "",
    summary: "Dumps the effective rules in ACL file format.",
    complexity: "O(N). Where N is the number of configured users.",
    since: "6.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(list),
};

fn list(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let users = cx.engine.acl.list();
    reply.array(users.len());
    users.iter().for_each(|user| reply.bulk(&user_line(&user.name, &user.rights())));
    Ok(())
}

/// Names all users.
pub static USERS: Command = Command {
    name: "ACL USERS",
    group: Group::Server,
    syntax: "",
    summary: "Lists all ACL users.",
    complexity: "O(N). Where N is the number of configured users.",
    since: "6.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: ADMIN,
    run: Run::Session(users),
};

fn users(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    let users = cx.engine.acl.list();
    reply.array(users.len());
    users.iter().for_each(|user| reply.bulk(&user.name));
    Ok(())
}

/// Names the connection's user.
pub static WHOAMI: Command = Command {
    name: "ACL WHOAMI",
    group: Group::Server,
    syntax: "",
    summary: "Returns the authenticated username of the current connection.",
    complexity: "O(1)",
    since: "6.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: ANYBODY,
    run: Run::Session(whoami),
};

fn whoami(cx: &mut SessionCx<'_>, _args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    reply.bulk(&cx.session.user().name);
    Ok(())
}

/// Names the categories, or the commands of one.
pub static CAT: Command = Command {
    name: "ACL CAT",
    group: Group::Server,
    syntax: "[category]",
    summary: "Lists the ACL categories, or the commands inside a category.",
    complexity: "O(1) since the categories and commands are a fixed set.",
    since: "6.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: ANYBODY,
    run: Run::Session(cat),
};

fn cat(cx: &mut SessionCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<(), CmdError> {
    match args.len() {
        2 => {
            reply.array(CATEGORIES.len());
            CATEGORIES.iter().for_each(|category| reply.bulk(category.as_bytes()));
        }
        3 => {
            let name = args.get(2);
            let category = category(name).ok_or_else(|| {
                let shown = shown(&name[..name.len().min(128)]);
                CmdError::new(format!("ERR Unknown category '{shown}'"))
            })?;
            let commands = cx.engine.commands.all().iter();
            let within: Vec<_> = commands.filter(|command| command.categories().contains(&category)).collect();
            reply.array(within.len());
            within.iter().for_each(|command| reply.bulk(command.full_name().as_bytes()));
        }
        _ => return Err(wrong_form(args)),
    }
    Ok(())
}

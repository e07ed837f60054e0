//! What each type calls its members, and what happens to them. Knows no command.

use tenon_engine::store::types::{HashForm, MemberForm, SetForm, ZsetForm};

/// The words of a type.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Names {
    /// What stands before the number of members: `FIELDS`.
    pub list: &'static str,
    /// The name of that number in the syntax: `numfields`.
    pub number: &'static str,
    /// One or more of them: `fields`.
    pub members: &'static str,
    /// The command that gives members a deadline in milliseconds since the UNIX epoch.
    pub expire_command: &'static str,
    /// The command that takes members out.
    pub remove_command: &'static str,
    /// The event of members that were given a deadline.
    pub expire_event: &'static str,
    /// The event of members that have lost theirs.
    pub persist_event: &'static str,
    /// The event of members that were taken out.
    pub remove_event: &'static str,
}

/// A type whose members may expire, and its words.
pub(in crate::redis) trait Named: MemberForm {
    /// The words.
    const NAMES: Names;
}

impl Named for HashForm {
    const NAMES: Names = Names {
        list: "FIELDS",
        number: "numfields",
        members: "fields",
        expire_command: "HPEXPIREAT",
        remove_command: "HDEL",
        expire_event: "hexpire",
        persist_event: "hpersist",
        remove_event: "hdel",
    };
}

impl Named for SetForm {
    const NAMES: Names = Names {
        list: "MEMBERS",
        number: "nummembers",
        members: "members",
        expire_command: "SPEXPIREAT",
        remove_command: "SREM",
        expire_event: "sexpire",
        persist_event: "spersist",
        remove_event: "srem",
    };
}

impl Named for ZsetForm {
    const NAMES: Names = Names {
        list: "MEMBERS",
        number: "nummembers",
        members: "members",
        expire_command: "ZPEXPIREAT",
        remove_command: "ZREM",
        expire_event: "zexpire",
        persist_event: "zpersist",
        remove_event: "zrem",
    };
}

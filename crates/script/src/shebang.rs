//! The first line of a script or library: `#!lua flags=... name=...`. Knows no Lua.

use tenon_wire::resp::words_of;

/// What a script says about itself; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags(u8);

impl ScriptFlags {
    /// None.
    pub const NONE: ScriptFlags = ScriptFlags(0);
    /// It changes nothing.
    pub const NO_WRITES: ScriptFlags = ScriptFlags(1);
    /// It may run when memory is used up.
    pub const ALLOW_OOM: ScriptFlags = ScriptFlags(2);
    /// It may run on a replica with stale data.
    pub const ALLOW_STALE: ScriptFlags = ScriptFlags(4);
    /// It cannot run in a cluster.
    pub const NO_CLUSTER: ScriptFlags = ScriptFlags(8);
    /// It may touch keys of several slots.
    pub const ALLOW_CROSS_SLOT_KEYS: ScriptFlags = ScriptFlags(16);
    /// It has no first line that says anything: what Redis allowed before there were flags goes.
    pub const UNSAID: ScriptFlags = ScriptFlags(32);

    const NAMES: [(ScriptFlags, &'static str); 5] = [
        (ScriptFlags::NO_WRITES, "no-writes"),
        (ScriptFlags::ALLOW_OOM, "allow-oom"),
        (ScriptFlags::ALLOW_STALE, "allow-stale"),
        (ScriptFlags::NO_CLUSTER, "no-cluster"),
        (ScriptFlags::ALLOW_CROSS_SLOT_KEYS, "allow-cross-slot-keys"),
    ];

    /// The flag of a name.
    pub fn of(name: &[u8]) -> Option<ScriptFlags> {
        Self::NAMES.iter().find(|(_, known)| known.as_bytes() == name).map(|(flag, _)| *flag)
    }

    /// Both sets together.
    pub const fn or(self, other: ScriptFlags) -> ScriptFlags {
        ScriptFlags(self.0 | other.0)
    }

    /// Whether any of `other` is in the set.
    pub const fn any(self, other: ScriptFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of the flags in it, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.any(*flag)).map(|(_, name)| name)
    }
}

/// Why a first line makes no sense; the text begins with the error's code.
pub type ShebangError = Vec<u8>;

fn error(text: &str, word: &[u8]) -> ShebangError {
    [b"ERR ", text.as_bytes(), word].concat()
}

/// The flags of an EVAL script, and where its body begins: at the end of its first line, so that lines keep their numbers.
///
/// # Errors
/// When the first line begins with `#!` and says something that is not known.
pub fn parse_script(source: &[u8]) -> Result<(ScriptFlags, usize), ShebangError> {
    if !source.starts_with(b"#!") {
        return Ok((ScriptFlags::UNSAID, 0));
    }
    let Some(end) = source.iter().position(|byte| *byte == b'\n') else {
        return Err(error("Invalid script shebang", b""));
    };
    let words = words_of(&source[..end]).unwrap_or_default();
    let Some((engine, words)) = words.split_first() else {
        return Err(error("Invalid engine in script shebang", b""));
    };
    if engine != b"#!lua" {
        return Err(error("Unexpected engine in script shebang: ", engine));
    }
    let mut flags = ScriptFlags::NONE;
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            return Err(error("Unknown lua shebang option: ", word));
        };
        for name in list.split(|byte| *byte == b',') {
            match ScriptFlags::of(name) {
                Some(flag) => flags = flags.or(flag),
                None if list.is_empty() => {}
                None => return Err(error("Unexpected flag in script shebang: ", name)),
            }
        }
    }
    Ok((flags, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(source: &str, expected: &str) {
        let text = parse_script(source.as_bytes()).expect_err("it says something unknown");
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn flags_are_read_and_lines_keep_their_numbers() {
        assert_eq!(parse_script(b"return 1"), Ok((ScriptFlags::UNSAID, 0)));
        assert_eq!(parse_script(b"#!lua\nreturn 1"), Ok((ScriptFlags::NONE, 5)));
        let (flags, body) = parse_script(b"#!lua  flags=no-writes,allow-oom \nreturn 1").unwrap();
        assert_eq!(flags.names().collect::<Vec<_>>(), ["no-writes", "allow-oom"]);
        assert_eq!(body, 33);
    }

    #[test]
    fn what_is_unknown_is_refused() {
        refused("#!lua", "ERR Invalid script shebang");
        refused("#!js\n", "ERR Unexpected engine in script shebang: #!js");
        refused("#!lua a=b\n", "ERR Unknown lua shebang option: a=b");
        refused("#!lua flags=x\n", "ERR Unexpected flag in script shebang: x");
        refused("#!lua flags='x y'\n", "ERR Unexpected flag in script shebang: x y");
        refused("#!lua flags=\"x\n", "ERR Invalid engine in script shebang");
    }
}

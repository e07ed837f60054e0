//! What a command is: its description and what its handler may touch. Knows no command.

use crate::args::Args;
use crate::blocking::Outcome;
use crate::context::{FollowingCx, KeyCx, KeysCx, ServerCx, SessionCx};
use crate::errors::CmdError;
use tenon_wire::resp::Reply;

pub use crate::keys::{Begin, ChannelKind, Find, KeyFlags, KeySpec, Keys};

/// A command, declared once as a static above its handler. COMMAND, the documents, the arity check and the tests all
/// derive from it.
#[derive(Debug)]
pub struct Command {
    /// Upper case; a subcommand has its container before it: `CLIENT ID`.
    pub name: &'static str,
    /// Where the documents list it.
    pub group: Group,
    /// The arguments in the notation of <https://redis.io/docs/latest/commands/>.
    pub syntax: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Big O, as the documents say it.
    pub complexity: &'static str,
    /// The Redis version that introduced it.
    pub since: &'static str,
    /// How many arguments it takes, its name (and its container's) counted.
    pub arity: Arity,
    /// Which arguments are keys.
    pub keys: Keys,
    /// What is to be known before it runs.
    pub flags: Flags,
    /// What runs, and what that may touch.
    pub run: Run,
}

/// How many arguments a command takes, its own name and its container's counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly so many.
    Exactly(usize),
    /// So many or more.
    AtLeast(usize),
}

impl Arity {
    /// Whether `count` arguments are right.
    #[inline]
    pub fn accepts(self, count: usize) -> bool {
        match self {
            Arity::Exactly(wanted) => count == wanted,
            Arity::AtLeast(least) => count >= least,
        }
    }

    /// As COMMAND INFO says it: negative for "at least".
    pub fn number(self) -> i64 {
        match self {
            Arity::Exactly(wanted) => wanted as i64,
            Arity::AtLeast(least) => -(least as i64),
        }
    }
}

/// The handler of a command that may wait.
pub type BlockingHandler = fn(&mut KeysCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<Outcome, CmdError>;

/// The handler of a command that follows names in its keys' data to further keys.
pub type FollowingHandler = fn(&mut FollowingCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<Effect, CmdError>;

/// What a handler may touch: the whole threading contract.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// One key, whose shard is locked.
    Key(fn(&mut KeyCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<Effect, CmdError>),
    /// The keys that the declaration names; their shards are locked, all at once.
    Keys(fn(&mut KeysCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<Effect, CmdError>),
    /// Each of the keys that the declaration names, one after another, all of their shards locked at once; the answer is
    /// for how many of them it was true, and a key for which a writing command says so has changed in the same way that it
    /// always does. A call with one key is one on one key.
    Each(fn(&mut KeyCx<'_>) -> bool),
    /// As `Keys`, and may wait until one of its keys holds something (never within MULTI or a script). It is then run
    /// again, with the same arguments.
    Blocking(BlockingHandler),
    /// As `Keys`, and keys that the data in them names (SORT's BY and GET).
    Following {
        /// The shards of the keys that the data names as it is now, as far as they are not held. Changes nothing, and
        /// arguments that `run` refuses need none.
        further: fn(&FollowingCx<'_>, &Args<'_>) -> Vec<usize>,
        /// Runs once all of them are held together with those of the declared keys.
        run: FollowingHandler,
    },
    /// The session and the settings; no data.
    Session(fn(&mut SessionCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<(), CmdError>),
    /// The whole server, shard by shard (all at once within MULTI).
    Server(fn(&mut ServerCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<(), CmdError>),
    /// Nothing of its own: the subcommands run.
    Container(&'static [&'static Command]),
    /// The session and the settings when the name stands alone; with a word behind it, the subcommand of that name.
    Alone(fn(&mut SessionCx<'_>, &Args<'_>, &mut Reply<'_>) -> Result<(), CmdError>, &'static [&'static Command]),
}

/// What a handler did to the data, and so what the log has of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Effect {
    /// The data is as before.
    Unchanged,
    /// The data has changed, and will change in the same way whenever the same command runs on what was there before: it
    /// is logged as it came. So neither the present nor chance has had a part in it.
    Verbatim,
    /// The data has changed as the commands say that the handler has put down with `log` and its kin.
    As,
}

impl Effect {
    /// `Verbatim` when `changed`.
    pub fn when(changed: bool) -> Effect {
        if changed { Effect::Verbatim } else { Effect::Unchanged }
    }

    /// Whether the data has changed.
    pub fn is_change(self) -> bool {
        self != Effect::Unchanged
    }
}

/// Where the documents list a command, with the names of redis.io.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Strings and counters.
    String,
    /// Commands for keys of any type.
    Generic,
    /// Commands on the connection.
    Connection,
    /// Commands on the server.
    Server,
    /// MULTI and its kin.
    Transactions,
    /// Channels and their subscribers.
    PubSub,
    /// Commands on the bits of strings.
    Bitmap,
    /// Commands on HyperLogLogs.
    HyperLogLog,
    /// Lists.
    List,
    /// Hashes.
    Hash,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Places in sorted sets.
    Geo,
    /// Streams.
    Stream,
    /// Scripts and functions.
    Scripting,
    /// Commands on clusters.
    Cluster,
}

impl Group {
    /// The name that COMMAND DOCS gives.
    pub fn name(self) -> &'static str {
        match self {
            Group::String => "string",
            Group::Generic => "generic",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Transactions => "transactions",
            Group::PubSub => "pubsub",
            Group::Bitmap => "bitmap",
            Group::HyperLogLog => "hyperloglog",
            Group::List => "list",
            Group::Hash => "hash",
            Group::Set => "set",
            Group::SortedSet => "sorted-set",
            Group::Geo => "geo",
            Group::Stream => "stream",
            Group::Scripting => "scripting",
            Group::Cluster => "cluster",
        }
    }
}

/// What is to be known of a command before it runs; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// May change data.
    pub const WRITE: Flags = Flags(1);
    /// Reads data and never changes it.
    pub const READONLY: Flags = Flags(1 << 1);
    /// May need memory: refused when there is none.
    pub const DENY_OOM: Flags = Flags(1 << 2);
    /// Takes constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 3);
    /// For administrators.
    pub const ADMIN: Flags = Flags(1 << 4);
    /// Allowed before AUTH.
    pub const NO_AUTH: Flags = Flags(1 << 5);
    /// Not allowed in scripts.
    pub const NO_SCRIPT: Flags = Flags(1 << 6);
    /// Allowed while data is loaded.
    pub const LOADING: Flags = Flags(1 << 7);
    /// Allowed on a replica with stale data.
    pub const STALE: Flags = Flags(1 << 8);
    /// Not shown to MONITOR.
    pub const SKIP_MONITOR: Flags = Flags(1 << 9);
    /// Not logged in the slow log, as it may hold secrets or is slow on purpose.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    /// Runs at once in MULTI instead of being queued, or is refused there by its own handler.
    pub const NOT_QUEUED: Flags = Flags(1 << 11);
    /// Not allowed in MULTI.
    pub const NO_MULTI: Flags = Flags(1 << 12);
    /// Reads or changes the whole keyspace: within MULTI all shards are locked for it.
    pub const WHOLE_KEYSPACE: Flags = Flags(1 << 13);
    /// In the ACL category `dangerous` although not for administrators only.
    pub const DANGEROUS: Flags = Flags(1 << 14);
    /// May be given no key at all although it takes keys (EVAL).
    pub const NO_MANDATORY_KEYS: Flags = Flags(1 << 15);
    /// Allowed while a script runs for too long.
    pub const ALLOW_BUSY: Flags = Flags(1 << 16);
    /// Not allowed while a replica loads its primary's data beside its own.
    pub const NO_ASYNC_LOADING: Flags = Flags(1 << 17);
    /// In the ACL category `connection` although of another group.
    pub const IN_CONNECTION: Flags = Flags(1 << 18);
    /// In the ACL categories `admin` and `dangerous` although anybody's to run.
    pub const IN_ADMIN: Flags = Flags(1 << 19);
    /// Takes no longer than a fast command, although Redis does not list it as one: where many follow one another they
    /// are timed together.
    pub const BRIEF: Flags = Flags(1 << 20);
    /// About channels.
    pub const PUBSUB: Flags = Flags(1 << 21);
    /// Changes no data and waits with the writes during a pause: replicas are to have it, too.
    pub const MAY_REPLICATE: Flags = Flags(1 << 22);
    /// Allowed to a RESP2 client that is subscribed: between messages it could not tell other replies.
    pub const WHILE_SUBSCRIBED: Flags = Flags(1 << 23);
    /// Answers by messages, which are heard even where replies are off.
    pub const ANSWERS_BY_PUSH: Flags = Flags(1 << 24);
    /// May wait for a key.
    pub const BLOCKING: Flags = Flags(1 << 25);
    /// In the ACL categories of the types that it works on (`set`, `sortedset`, `list`) and not in `keyspace`.
    pub const OF_COLLECTIONS: Flags = Flags(1 << 26);
    /// May change the libraries of functions.
    pub const CHANGES_LIBRARIES: Flags = Flags(1 << 27);
    /// May have the log begin or end: a transaction with it is put down whole for the log that there is at its end.
    pub const SWITCHES_LOG: Flags = Flags(1 << 28);
    /// Waits, outside of MULTI, for the scripts that run, until one of them is busy or all have ended.
    pub const WAITS_FOR_SCRIPTS: Flags = Flags(1 << 29);

    /// Both sets together.
    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The set but for those of `other`.
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether any of `other` is in the set.
    #[inline]
    pub const fn any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// The names that COMMAND INFO gives, in Redis's order.
    fn names(self) -> Vec<&'static str> {
        const NAMES: [(Flags, &str); 17] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENY_OOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::PUBSUB, "pubsub"),
            (Flags::NO_SCRIPT, "noscript"),
            (Flags::BLOCKING, "blocking"),
            (Flags::LOADING, "loading"),
            (Flags::STALE, "stale"),
            (Flags::SKIP_MONITOR, "skip_monitor"),
            (Flags::SKIP_SLOWLOG, "skip_slowlog"),
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
            (Flags::NO_ASYNC_LOADING, "no_async_loading"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::ALLOW_BUSY, "allow_busy"),
        ];
        NAMES.iter().filter(|(flag, _)| self.any(*flag)).map(|(_, name)| *name).collect()
    }
}

impl Command {
    /// Runs a call that is on one key.
    #[inline(always)]
    pub(crate) fn run_on_key(
        &self,
        cx: &mut KeyCx<'_>,
        args: &Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<Effect, CmdError> {
        match self.run {
            Run::Key(run) => run(cx, args, reply),
            Run::Each(run) => {
                let is_so = run(cx);
                reply.int(is_so.into());
                Ok(self.effect_on_each(is_so))
            }
            _ => unreachable!("only calls on one key have a hash"),
        }
    }

    /// What a command on each of its keys has done, when `is_so` for any.
    pub(crate) fn effect_on_each(&self, is_so: bool) -> Effect {
        Effect::when(is_so && self.flags.any(Flags::WRITE))
    }

    /// The subcommands of a container.
    pub fn subcommands(&self) -> &'static [&'static Command] {
        match self.run {
            Run::Container(subcommands) | Run::Alone(_, subcommands) => subcommands,
            _ => &[],
        }
    }

    /// The name in lower case, a subcommand's behind a bar: `client|id`.
    pub fn full_name(&self) -> String {
        self.name.to_ascii_lowercase().replacen(' ', "|", 1)
    }

    /// The names of its flags that COMMAND INFO gives.
    pub fn flag_names(&self) -> Vec<&'static str> {
        let mut names = self.flags.names();
        if self.has_movable_keys() {
            names.push("movablekeys");
        }
        names
    }

    /// Whether it is in the ACL category `keyspace`.
    fn is_in_keyspace(&self) -> bool {
        let is_elsewhere = self.flags.any(Flags::OF_COLLECTIONS.or(Flags::IN_CONNECTION));
        self.group == Group::Generic && self.subcommands().is_empty() && !is_elsewhere
            || self.flags.any(Flags::WHOLE_KEYSPACE)
    }

    /// Whether it may be about keys of the selected database, so that its user must be allowed that: as Valkey has it, all
    /// that reads or writes, that takes keys, or is in the category `keyspace`.
    pub fn touches_keyspace(&self) -> bool {
        self.flags.any(Flags::READONLY.or(Flags::WRITE))
            || self.is_in_keyspace()
            || !matches!(self.keys, Keys::None | Keys::Channels { .. })
    }

    /// The ACL categories, in Redis's order (<https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/>).
    pub fn categories(&self) -> Vec<&'static str> {
        let flags = self.flags;
        let mut categories = Vec::new();
        let mut add = |when: bool, category| {
            if when {
                categories.push(category);
            }
        };
        // A container is in no family's category: its subcommands are.
        let in_group = |group| self.group == group && self.subcommands().is_empty();
        let of_collections = flags.any(Flags::OF_COLLECTIONS);
        add(self.is_in_keyspace(), "keyspace");
        // What a script does is its own.
        add(flags.any(Flags::READONLY) && !in_group(Group::Scripting), "read");
        add(flags.any(Flags::WRITE), "write");
        add(in_group(Group::Set) || of_collections, "set");
        add(in_group(Group::SortedSet) || of_collections, "sortedset");
        add(in_group(Group::List) || of_collections, "list");
        add(in_group(Group::Hash), "hash");
        add(in_group(Group::String), "string");
        add(in_group(Group::Bitmap), "bitmap");
        add(in_group(Group::HyperLogLog), "hyperloglog");
        add(in_group(Group::Geo), "geo");
        add(in_group(Group::Stream), "stream");
        add(flags.any(Flags::PUBSUB), "pubsub");
        add(flags.any(Flags::ADMIN.or(Flags::IN_ADMIN)), "admin");
        add(flags.any(Flags::FAST), "fast");
        add(!flags.any(Flags::FAST), "slow");
        add(flags.any(Flags::BLOCKING), "blocking");
        add(flags.any(Flags::ADMIN.or(Flags::IN_ADMIN).or(Flags::DANGEROUS)), "dangerous");
        add(in_group(Group::Connection) || flags.any(Flags::IN_CONNECTION), "connection");
        add(in_group(Group::Transactions), "transaction");
        add(in_group(Group::Scripting), "scripting");
        categories
    }
}

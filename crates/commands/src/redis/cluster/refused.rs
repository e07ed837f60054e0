//! CLUSTER and what clients of a cluster say: known, and refused as a server refuses them that is in no cluster. Clients
//! and tools go by that answer, and rules of users name the commands.

use crate::redis::help_command::help_command;
use tenon_engine::args::Args;
use tenon_engine::command::{Arity, Command, Flags, Group, Keys, Run};
use tenon_engine::context::SessionCx;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::Reply;

const NO_CLUSTER: CmdError = CmdError::text("ERR This instance has cluster support disabled");

/// What reads the state of the cluster.
const READS: Flags = Flags::STALE;
/// What looks into it as an administrator does.
const INSPECTS: Flags = Flags::ADMIN.or(Flags::STALE);
/// What changes it.
const CHANGES: Flags = INSPECTS.or(Flags::NO_ASYNC_LOADING);

/// Everything about the cluster.
pub static CLUSTER: Command = Command {
    name: "CLUSTER",
    group: Group::Cluster,
    syntax: "",
    summary: "A container for Redis Cluster commands.",
    complexity: "Depends on subcommand.",
    since: "3.0.0",
    arity: Arity::AtLeast(2),
    keys: Keys::None,
    flags: Flags::NONE,
    run: Run::Container(&[
        &ADDSLOTS,
        &ADDSLOTSRANGE,
        &BUMPEPOCH,
        &COUNT_FAILURE_REPORTS,
        &COUNTKEYSINSLOT,
        &DELSLOTS,
        &DELSLOTSRANGE,
        &FAILOVER,
        &FLUSHSLOTS,
        &FORGET,
        &GETKEYSINSLOT,
        &HELP,
        &INFO,
        &KEYSLOT,
        &LINKS,
        &MEET,
        &MYID,
        &MYSHARDID,
        &NODES,
        &REPLICAS,
        &REPLICATE,
        &RESET,
        &SAVECONFIG,
        &SET_CONFIG_EPOCH,
        &SETSLOT,
        &SHARDS,
        &SLAVES,
        &SLOTS,
    ]),
};

static HELP: Command = help_command("CLUSTER HELP", Group::Cluster, "5.0.0", refuse);

/// Gives the node's id.
static MYID: Command = Command {
    name: "CLUSTER MYID",
    group: Group::Cluster,
    syntax: "",
    summary: "Returns the ID of a node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    keys: Keys::None,
    flags: READS,
    run: Run::Session(refuse),
};

/// Gives hash slots to the node.
static ADDSLOTS: Command = Command {
    name: "CLUSTER ADDSLOTS",
    syntax: "slot [slot ...]",
    summary: "Assigns new hash slots to a node.",
    complexity: "O(N) where N is the total number of hash slot arguments.",
    since: "3.0.0",
    arity: Arity::AtLeast(3),
    flags: CHANGES,
    ..MYID
};

/// Gives ranges of hash slots to the node.
static ADDSLOTSRANGE: Command = Command {
    name: "CLUSTER ADDSLOTSRANGE",
    syntax: "start-slot end-slot [start-slot end-slot ...]",
    summary: "Assigns new hash slot ranges to a node.",
    complexity: "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
    since: "7.0.0",
    arity: Arity::AtLeast(4),
    flags: CHANGES,
    ..MYID
};

/// Advances the cluster's configuration epoch.
static BUMPEPOCH: Command = Command {
    name: "CLUSTER BUMPEPOCH",
    syntax: "",
    summary: "Advances the cluster config epoch.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    flags: CHANGES,
    ..MYID
};

/// Counts the reports that a node has failed.
static COUNT_FAILURE_REPORTS: Command = Command {
    name: "CLUSTER COUNT-FAILURE-REPORTS",
    syntax: "node-id",
    summary: "Returns the number of active failure reports active for a node.",
    complexity: "O(N) where N is the number of failure reports.",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: INSPECTS,
    ..MYID
};

/// Counts the keys in a hash slot.
static COUNTKEYSINSLOT: Command = Command {
    name: "CLUSTER COUNTKEYSINSLOT",
    syntax: "slot",
    summary: "Returns the number of keys in a hash slot.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: READS,
    ..MYID
};

/// Takes hash slots from the node.
static DELSLOTS: Command = Command {
    name: "CLUSTER DELSLOTS",
    syntax: "slot [slot ...]",
    summary: "Sets hash slots as unbound for a node.",
    complexity: "O(N) where N is the total number of hash slot arguments.",
    since: "3.0.0",
    arity: Arity::AtLeast(3),
    flags: CHANGES,
    ..MYID
};

/// Takes ranges of hash slots from the node.
static DELSLOTSRANGE: Command = Command {
    name: "CLUSTER DELSLOTSRANGE",
    syntax: "start-slot end-slot [start-slot end-slot ...]",
    summary: "Sets hash slot ranges as unbound for a node.",
    complexity: "O(N) where N is the total number of the slots between the start slot and end slot arguments.",
    since: "7.0.0",
    arity: Arity::AtLeast(4),
    flags: CHANGES,
    ..MYID
};

/// Lets a replica take the place of its master.
static FAILOVER: Command = Command {
    name: "CLUSTER FAILOVER",
    syntax: "[FORCE | TAKEOVER]",
    summary: "Forces a replica to perform a manual failover of its master.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::AtLeast(2),
    flags: CHANGES,
    ..MYID
};

/// Takes all hash slots from the node.
static FLUSHSLOTS: Command = Command {
    name: "CLUSTER FLUSHSLOTS",
    syntax: "",
    summary: "Deletes all slots information from a node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    flags: CHANGES,
    ..MYID
};

/// Takes a node out of the table of nodes.
static FORGET: Command = Command {
    name: "CLUSTER FORGET",
    syntax: "node-id",
    summary: "Removes a node from the nodes table.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: CHANGES,
    ..MYID
};

/// Names keys in a hash slot.
static GETKEYSINSLOT: Command = Command {
    name: "CLUSTER GETKEYSINSLOT",
    syntax: "slot count",
    summary: "Returns the key names in a hash slot.",
    complexity: "O(log(N)) where N is the number of requested keys.",
    since: "3.0.0",
    arity: Arity::Exactly(4),
    flags: READS,
    ..MYID
};

/// Tells the cluster's state.
static INFO: Command = Command {
    name: "CLUSTER INFO",
    syntax: "",
    summary: "Returns information about the state of a node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    flags: READS,
    ..MYID
};

/// Gives the hash slot of a key.
static KEYSLOT: Command = Command {
    name: "CLUSTER KEYSLOT",
    syntax: "key",
    summary: "Returns the hash slot for a key.",
    complexity: "O(N) where N is the number of bytes in the key.",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: READS,
    ..MYID
};

/// Lists the links to and from other nodes.
static LINKS: Command = Command {
    name: "CLUSTER LINKS",
    syntax: "",
    summary: "Returns a list of all TCP links to and from peer nodes.",
    complexity: "O(N) where N is the total number of Cluster nodes.",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    flags: READS,
    ..MYID
};

/// Lets two nodes meet.
static MEET: Command = Command {
    name: "CLUSTER MEET",
    syntax: "ip port [cluster-bus-port]",
    summary: "Forces a node to handshake with another node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::AtLeast(4),
    flags: CHANGES,
    ..MYID
};

/// Gives the id of the node's shard.
static MYSHARDID: Command = Command {
    name: "CLUSTER MYSHARDID",
    syntax: "",
    summary: "Returns the shard ID of a node.",
    complexity: "O(1)",
    since: "7.2.0",
    arity: Arity::Exactly(2),
    flags: READS,
    ..MYID
};

/// Lists the nodes.
static NODES: Command = Command {
    name: "CLUSTER NODES",
    syntax: "",
    summary: "Returns the cluster configuration for a node.",
    complexity: "O(N) where N is the total number of Cluster nodes.",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    flags: READS,
    ..MYID
};

/// Lists a master's replicas.
static REPLICAS: Command = Command {
    name: "CLUSTER REPLICAS",
    syntax: "node-id",
    summary: "Lists the replica nodes of a master node.",
    complexity: "O(1)",
    since: "5.0.0",
    arity: Arity::Exactly(3),
    flags: INSPECTS,
    ..MYID
};

/// Makes the node a replica of a master.
static REPLICATE: Command = Command {
    name: "CLUSTER REPLICATE",
    syntax: "node-id",
    summary: "Configure a node as replica of a master node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: CHANGES,
    ..MYID
};

/// Lets the node forget the cluster.
static RESET: Command = Command {
    name: "CLUSTER RESET",
    syntax: "[HARD | SOFT]",
    summary: "Resets a node.",
    complexity: "O(N) where N is the number of known nodes. The command may execute a FLUSHALL as a side effect.",
    since: "3.0.0",
    arity: Arity::AtLeast(2),
    flags: Flags::ADMIN.or(Flags::NO_SCRIPT).or(Flags::STALE),
    ..MYID
};

/// Saves the cluster's state.
static SAVECONFIG: Command = Command {
    name: "CLUSTER SAVECONFIG",
    syntax: "",
    summary: "Forces a node to save the cluster configuration to disk.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    flags: CHANGES,
    ..MYID
};

/// Sets the configuration epoch of a new node.
static SET_CONFIG_EPOCH: Command = Command {
    name: "CLUSTER SET-CONFIG-EPOCH",
    syntax: "config-epoch",
    summary: "Sets the configuration epoch for a new node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: CHANGES,
    ..MYID
};

/// Gives a hash slot to a node, or lets it migrate.
static SETSLOT: Command = Command {
    name: "CLUSTER SETSLOT",
    syntax: "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>",
    summary: "Binds a hash slot to a node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::AtLeast(4),
    flags: CHANGES,
    ..MYID
};

/// Lists the shards and their nodes.
static SHARDS: Command = Command {
    name: "CLUSTER SHARDS",
    syntax: "",
    summary: "Returns the mapping of cluster slots to shards.",
    complexity: "O(N) where N is the total number of cluster nodes.",
    since: "7.0.0",
    arity: Arity::Exactly(2),
    flags: READS,
    ..MYID
};

/// Lists a master's replicas.
static SLAVES: Command = Command {
    name: "CLUSTER SLAVES",
    syntax: "node-id",
    summary: "Lists the replica nodes of a master node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(3),
    flags: INSPECTS,
    ..MYID
};

/// Lists the hash slots and their nodes.
static SLOTS: Command = Command {
    name: "CLUSTER SLOTS",
    syntax: "",
    summary: "Returns the mapping of cluster slots to nodes.",
    complexity: "O(N) where N is the total number of Cluster nodes.",
    since: "3.0.0",
    arity: Arity::Exactly(2),
    flags: READS,
    ..MYID
};

/// Lets a connection read from a replica in a cluster.
pub static READONLY: Command = Command {
    name: "READONLY",
    syntax: "",
    summary: "Enables read-only queries for a connection to a Redis Cluster replica node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(1),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST).or(Flags::IN_CONNECTION),
    ..MYID
};

/// Ends that.
pub static READWRITE: Command = Command {
    name: "READWRITE",
    syntax: "",
    summary: "Enables read-write queries for a connection to a Reids Cluster replica node.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(1),
    flags: Flags::LOADING.or(Flags::STALE).or(Flags::FAST).or(Flags::IN_CONNECTION),
    ..MYID
};

/// Lets the next command reach a hash slot that is on its way here.
pub static ASKING: Command = Command {
    name: "ASKING",
    syntax: "",
    summary: "Signals that a cluster client is following an -ASK redirect.",
    complexity: "O(1)",
    since: "3.0.0",
    arity: Arity::Exactly(1),
    flags: Flags::FAST.or(Flags::IN_CONNECTION),
    ..MYID
};

fn refuse(_cx: &mut SessionCx<'_>, _args: &Args<'_>, _reply: &mut Reply<'_>) -> Result<(), CmdError> {
    Err(NO_CLUSTER)
}

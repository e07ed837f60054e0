//! XREADGROUP: entries are given to the consumers of a group.

use super::delivery_log::Deliveries;
use super::id::parse_id;
use super::read_args::{ReadArgs, Reader, StreamsReply, find_keys};
use super::reply::{reply_entry, reply_fields, reply_id};
use crate::redis::answer_limit::AnswerLimit;
use tenon_engine::args::Args;
use tenon_engine::blocking::Outcome;
use tenon_engine::command::{Arity, Command, Effect, Flags, Group, KeyFlags, KeySpec, Keys, Run};
use tenon_engine::context::{Change, KeysCx};
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::types::Stream;
use tenon_engine::store::types::stream::{Acknowledgement, Claim, ConsumerNumber, Entry, Pending, StreamId};
use tenon_engine::wire::resp::Reply;

const LAST_IN_GROUP: CmdError = CmdError::text(
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
);
const NEWEST_IN_GROUP: CmdError = CmdError::text(
    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.",
);

/// Gives a consumer entries of each stream: those that its group was not given yet, or those that it was given itself
/// and has not acknowledged.
pub static XREADGROUP: Command = Command {
    name: "XREADGROUP",
    group: Group::Stream,
    syntax: "GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]",
    summary: "Returns new or historical messages from a stream for a consumer in a group. Blocks until a message is available otherwise.",
    complexity: "For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.",
    since: "5.0.0",
    arity: Arity::AtLeast(7),
    keys: Keys::Found { specs: &[KeySpec::half_behind("STREAMS", 4, KeyFlags::READ)], find: find_keys },
    flags: Flags::WRITE.or(Flags::BLOCKING),
    run: Run::Blocking(xreadgroup),
};

/// What of a stream is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    /// What the group was not given yet.
    New,
    /// What the consumer was given behind this id.
    Given(StreamId),
}

fn wanted(text: &[u8]) -> Result<Wanted, CmdError> {
    match text {
        b">" => Ok(Wanted::New),
        b"$" => Err(LAST_IN_GROUP),
        b"+" => Err(NEWEST_IN_GROUP),
        // Behind the highest id there is nothing to be given again: as in Redis it is what `>` stands for.
        _ => parse_id(text, 0).map(|id| if id == StreamId::MAX { Wanted::New } else { Wanted::Given(id) }),
    }
}

fn no_group(key: &[u8], group: &[u8]) -> CmdError {
    let (key, group) = (shown(key), shown(group));
    CmdError::new(format!("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"))
}

/// What is given, and to whom.
struct Delivery<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    /// The most entries of a stream.
    count: usize,
    acknowledgement: Acknowledgement,
    /// For how long nothing must have happened to an entry that is taken over, in milliseconds.
    claim_idle_ms: Option<u64>,
    now_ms: u64,
    /// Whether what is given is put down for the log.
    logs: bool,
}

impl Delivery<'_> {
    /// Gives the consumer the entries `idle`, which it takes over, and as many new ones as it wants with them. Gives how
    /// many they are.
    #[expect(clippy::too_many_arguments, reason = "they are what is given, to whom, and where it is written")]
    fn give_new(
        &self,
        stream: &mut Stream,
        consumer: ConsumerNumber,
        idle: &[StreamId],
        key: &[u8],
        deliveries: &mut Deliveries,
        answer: &mut StreamsReply,
        reply: &mut Reply<'_>,
    ) -> usize {
        answer.begin_stream(key, reply);
        let array = reply.array_deferred();
        let claim = Claim {
            consumer,
            idle_ms_min: 0,
            delivered_ms: self.now_ms,
            deliveries: None,
            is_delivery: true,
            is_forced: false,
        };
        for &id in idle {
            let before = stream.group(self.group).and_then(|group| group.pending(id));
            reply_claimed(reply, &stream.get(id).expect("what is not there is not idle"), before, self.now_ms);
            // Whoever wants no acknowledgement has to give it all the same for what it takes over.
            stream.claim(self.group, id, &claim, self.now_ms);
        }
        let is_pending = self.acknowledgement == Acknowledgement::Expected;
        if self.logs {
            deliveries.pending.extend_from_slice(idle);
        }
        let most = self.count - idle.len();
        let given = stream.deliver(self.group, consumer, most, self.now_ms, self.acknowledgement, |entry| {
            if self.claim_idle_ms.is_some() {
                reply_claimed(reply, &entry, None, self.now_ms);
            } else {
                reply_entry(reply, &entry);
            }
            if self.logs && is_pending {
                deliveries.pending.push(entry.id());
            }
        });
        deliveries.has_moved = given > 0;
        reply.finish(array, idle.len() + given);
        idle.len() + given
    }

    /// Gives the consumer what is wanted of a stream that has the group, and writes it behind the stream's key.
    fn give(
        &self,
        stream: &mut Stream,
        wanted: Wanted,
        key: &[u8],
        answer: &mut StreamsReply,
        reply: &mut Reply<'_>,
    ) -> Change<Deliveries> {
        let mut deliveries = Deliveries::default();
        let group = stream.group_mut(self.group).expect("it was there at this instant");
        let last_id = group.last_id();
        let (consumer, is_new) = group.see_consumer(self.consumer, self.now_ms);
        let given = match wanted {
            Wanted::New => {
                let idle = self
                    .claim_idle_ms
                    .map_or(Vec::new(), |idle_ms_min| stream.idle(self.group, idle_ms_min, self.count, self.now_ms));
                let any = !idle.is_empty() || stream.behind(last_id).next().is_some();
                if any { self.give_new(stream, consumer, &idle, key, &mut deliveries, answer, reply) } else { 0 }
            }
            Wanted::Given(behind) => {
                answer.begin_stream(key, reply);
                let array = reply.array_deferred();
                let given = behind.next().map_or(0, |from| {
                    stream.deliver_again(self.group, consumer, from, self.count, self.now_ms, |id, entry| match entry {
                        Some(entry) => {
                            reply_entry(reply, &entry);
                            if self.logs {
                                deliveries.pending.push(id);
                            }
                        }
                        None => reply_gone(reply, id),
                    })
                });
                reply.finish(array, given);
                given
            }
        };
        deliveries.is_new_consumer = is_new;
        match (is_new, given) {
            (true, 0) => Change::aside(Some("xgroup-createconsumer"), deliveries),
            (true, _) => Change::aside(Some("xgroup-createconsumer"), deliveries).times(2),
            (false, 0) => Change::nothing(deliveries),
            (false, _) => Change::aside(None, deliveries),
        }
    }
}

/// Writes an entry where some may be taken over: with how long nothing had happened to it, and how often it had been
/// delivered before.
fn reply_claimed(reply: &mut Reply<'_>, entry: &Entry<'_>, before: Option<Pending>, now_ms: u64) {
    reply.array(4);
    reply_id(reply, entry.id());
    reply_fields(reply, entry);
    reply.int(before.map_or(0, |before| before.idle_ms(now_ms)) as i64);
    reply.int(before.map_or(0, |before| before.deliveries) as i64);
}

/// Writes an entry that was deleted after it had been given: its id.
fn reply_gone(reply: &mut Reply<'_>, id: StreamId) {
    reply.array(2);
    reply_id(reply, id);
    reply.null_array();
}

fn xreadgroup(cx: &mut KeysCx<'_>, args: &Args<'_>, reply: &mut Reply<'_>) -> Result<Outcome, CmdError> {
    let now_ms = cx.now_ms();
    let read = ReadArgs::parse(args, Reader::InGroup, now_ms)?;
    let (group, consumer) = read.group(args);
    let mut streams = Vec::with_capacity(read.streams());
    for stream in 0..read.streams() {
        let key = read.key(args, stream);
        // Where it has waited, what other keys hold by now is not its business.
        if cx.is_ready(key) {
            let mut cx = cx.key(key);
            let found = cx.read_collection::<Stream>()?;
            found.and_then(|found| found.group(group)).ok_or_else(|| no_group(key, group))?;
            streams.push((key, wanted(args.get(read.id_at(stream)))?));
        }
    }
    let acknowledgement = if read.no_ack { Acknowledgement::Given } else { Acknowledgement::Expected };
    let claim_idle_ms = read.claim_idle_ms;
    let logs = cx.logs();
    let delivery = Delivery { group, consumer, count: read.count, acknowledgement, claim_idle_ms, now_ms, logs };
    let (limit, mut answer) = (AnswerLimit::of_output(cx.engine(), reply), StreamsReply::default());
    let mut effect = Effect::Unchanged;
    // When there may be something to take over.
    let mut idle_in_ms: Option<u64> = None;
    for (key, wanted) in streams {
        // What was given is not taken back; what was not is there for the next call.
        if !limit.allows_more(reply) {
            break;
        }
        let outcome = cx.key(key).update_existing(|stream: &mut Stream| {
            let change = delivery.give(stream, wanted, key, &mut answer, reply);
            if let Some(idle_ms_min) = claim_idle_ms {
                let ms = stream.idle_in_ms(group, idle_ms_min, now_ms);
                idle_in_ms = Some(idle_in_ms.map_or(ms, |first| first.min(ms)));
            }
            Ok(change)
        })?;
        if let Some((deliveries, Effect::Verbatim)) = outcome {
            effect = deliveries.log(&mut cx.key(key), group, consumer);
        }
    }
    if answer.finish(reply) {
        return Ok(Outcome::Done(effect));
    }
    Ok(read.wait(reply, |wait| {
        let wait = wait.until_gone();
        match idle_in_ms {
            Some(ms) => wait.again_in_ms(ms),
            None => wait,
        }
    }))
}

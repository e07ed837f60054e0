//! Rounds: clients play at the same time what was drawn for them, and what they saw is checked. Knows no command.

use crate::check::{Model, Verdict, check};
use crate::client::{Client, Packet, read_all};
use crate::commands::{FAMILIES, Family, Grammar};
use crate::disturb::Disturbance;
use crate::history::{Call, Operation};
use crate::model::State;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use tenon_testkit::patience::PATIENCE;
use tenon_testkit::random::Random;
use tenon_testkit::server::Server;
use tenon_testkit::target::Dialect;

/// How a server is started and what goes on beside the clients.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// What a failure is told by.
    pub name: &'static str,
    /// Settings of the server.
    pub server: &'static [(&'static str, &'static str)],
    /// What goes on meanwhile.
    pub disturbances: &'static [Disturbance],
    /// What is played.
    pub families: &'static [Family],
    /// How many elements the collections have.
    pub fill: usize,
    /// How long scripts that idle do, in turns of a loop.
    pub idles: u32,
    /// Clients of memcached's protocol.
    pub item_clients: usize,
    /// Whether some scripts do not declare their keys.
    pub undeclared: bool,
    /// Whether scripts write what they have read; where they may be refused between two writes they cannot.
    pub swaps: bool,
}

/// The usual.
pub const PLAIN: Setting = Setting {
    name: "plain",
    server: &[],
    disturbances: &[],
    families: &FAMILIES,
    fill: 0,
    idles: 3_000,
    item_clients: 2,
    undeclared: true,
    swaps: true,
};

/// What has been played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Rounds.
    pub rounds: usize,
    /// Operations that were checked.
    pub operations: usize,
    /// Rounds whose check was given up.
    pub given_up: usize,
    /// Operations that a server short of memory refused.
    pub refused: usize,
}

/// Clients of RESP.
const CLIENTS: usize = 5;

/// A client's thread, which plays what it is sent.
struct Player {
    plans: Sender<Vec<Packet>>,
    played: Receiver<Vec<Operation>>,
    dialect: Dialect,
}

fn player(mut client: Client, dialect: Dialect, start: Arc<Barrier>) -> Player {
    let (plans, to_play) = channel::<Vec<Packet>>();
    let (done, played) = channel();
    thread::spawn(move || {
        for plan in to_play {
            client.begin();
            start.wait();
            let mut operations = Vec::new();
            for packet in &plan {
                operations.extend(client.play(packet).expect("the server answers"));
            }
            if done.send(operations).is_err() {
                break;
            }
        }
    });
    Player { plans, played, dialect }
}

/// Plays rounds until the time is over; a round is made of the seed and its number.
pub fn play(setting: &Setting, seed: u64, time: Duration) -> Tally {
    let begun = Instant::now();
    let server = Server::tenon(setting.server).unwrap_or_else(|error| panic!("{}: {error}", setting.name));
    let disturbed: Vec<_> = setting.disturbances.iter().map(|which| which.begin(&server, seed)).collect();
    let epoch = Instant::now();
    let players = CLIENTS + setting.item_clients;
    let start = Arc::new(Barrier::new(players));
    let dialect = |number: usize| if number < CLIENTS { Dialect::Redis } else { Dialect::Memcache };
    let players: Vec<Player> = (0..players)
        .map(|number| {
            let client = Client::connect(&server, dialect(number), number, epoch);
            player(client, dialect(number), Arc::clone(&start))
        })
        .collect();
    let mut reader = Client::connect(&server, Dialect::Redis, players.len(), epoch);
    let mut tally = Tally::default();
    while begun.elapsed() < time {
        let mut random = Random(seed.wrapping_add(tally.rounds as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let family = random.of(setting.families);
        let mut grammar = Grammar::new(family, 1 + random.below(4), setting.idles);
        grammar.swaps = setting.swaps;
        let state = prepare(&mut reader, &grammar, &mut random, setting.fill);
        // All at once and without a pause, or each in its own way.
        let volley = random.one_in(2);
        if setting.undeclared {
            grammar = grammar.undeclared();
        }
        for player in &players {
            player.plans.send(plan(&grammar, player.dialect, volley, &mut random)).expect("it waits for one");
        }
        let mut history: Vec<Vec<Operation>> =
            players.iter().map(|player| player.played.recv_timeout(PATIENCE).expect("it has played")).collect();
        history.push(read_all(&mut reader, grammar.keys(), grammar.databases()));
        let all = || history.iter().flatten();
        tally.rounds += 1;
        tally.operations += all().count();
        tally.refused += all().filter(|operation| crate::history::show(&operation.reply).contains("-OOM")).count();
        match check(&state, &history) {
            Verdict::Linearizable => {}
            Verdict::GivenUp => tally.given_up += 1,
            Verdict::Not(order, reached) => {
                report(setting, seed, tally.rounds, &history, &order, &state, &reached);
                panic!("{}, {family:?}: not linearizable; {}", setting.name, again(seed));
            }
        }
    }
    drop(players);
    disturbed.into_iter().for_each(crate::disturb::Disturbed::end);
    tally
}

fn again(seed: u64) -> String {
    format!("run again with TENON_RANDOM_SEED={seed} (what is asked is the same then, when it is not)")
}

/// Begins with no keys but some that are set now; gives what is there then.
fn prepare(reader: &mut Client, grammar: &Grammar, random: &mut Random, fill: usize) -> State {
    let mut state = State::default();
    let flush = vec!["FLUSHALL".to_owned()];
    let flush = Packet { calls: vec![Call::Command(flush)], pause: Duration::ZERO };
    reader.play(&flush).expect("an answer");
    for words in grammar.setup(random, fill) {
        let packet = Packet { calls: vec![Call::Command(words)], pause: Duration::ZERO };
        for operation in reader.play(&packet).expect("an answer") {
            state = state.step(&operation).pop().unwrap_or_else(|| panic!("alone, but wrong: {operation}"));
        }
    }
    state
}

/// What one client does in a round.
fn plan(grammar: &Grammar, dialect: Dialect, volley: bool, random: &mut Random) -> Vec<Packet> {
    let mut left = if dialect == Dialect::Memcache && !grammar.has_items() { 0 } else { 4 + random.below(11) };
    let longest = if volley { 8 } else { random.of(&[1, 1, 2, 4, 8]) };
    let hurried = volley || random.one_in(2);
    let mut packets = Vec::new();
    while left > 0 {
        let count = (1 + random.below(longest)).min(left);
        left -= count;
        let pause = if hurried { 0 } else { random.below(150) as u64 };
        let pause = Duration::from_micros(pause);
        if dialect == Dialect::Memcache {
            let calls = (0..count).map(|_| Call::Command(grammar.item_command(random))).collect();
            packets.push(Packet { calls, pause });
            continue;
        }
        let mut calls = Vec::new();
        while calls.len() < count {
            if grammar.databases() > 1 && random.one_in(4) {
                // What stands behind it in the same packet would be in a database that is not known yet.
                packets.push(Packet { calls: std::mem::take(&mut calls), pause });
                let select = vec!["SELECT".to_owned(), random.below(grammar.databases()).to_string()];
                packets.push(Packet { calls: vec![Call::Command(select)], pause: Duration::ZERO });
            }
            if random.one_in(10) {
                let each = grammar.transaction(random);
                if random.one_in(2) {
                    calls.extend(each);
                } else {
                    packets.push(Packet { calls: std::mem::take(&mut calls), pause });
                    let single = |call| Packet { calls: vec![call], pause: Duration::ZERO };
                    packets.extend(each.into_iter().map(single));
                    break;
                }
            } else {
                calls.push(grammar.call(random));
            }
        }
        packets.push(Packet { calls, pause });
    }
    packets.retain(|packet| !packet.calls.is_empty());
    packets
}

fn report(
    setting: &Setting,
    seed: u64,
    round: usize,
    history: &[Vec<Operation>],
    order: &[(usize, usize)],
    start: &State,
    reached: &State,
) {
    let mut all: Vec<&Operation> = history.iter().flatten().collect();
    all.sort_by_key(|operation| operation.invoked_ns);
    let mut text = format!("\nsetting {}, seed {seed}, round {round}\nfrom {start:?}\nhistory:\n", setting.name);
    all.iter().for_each(|operation| text += &format!("{operation}\n"));
    text += "the longest order:\n";
    order.iter().for_each(|&(client, at)| text += &format!("{}\n", history[client][at]));
    text += &format!("leads to {reached:?}\nand cannot be followed by any of\n");
    for (client, operations) in history.iter().enumerate() {
        let done = order.iter().filter(|place| place.0 == client).count();
        if let Some(next) = operations.get(done) {
            text += &format!("{next}\n");
        }
    }
    eprintln!("{text}");
}

//! Clients that wait for keys, against others that take from them at the same time: who waited first is served first.
//! A change and the serving of those who wait for it are one step for everybody else.

#[allow(dead_code, reason = "each of the tests that share it uses a part")]
mod workers;

use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use tenon_engine::Engine;
use workers::{Client, LOCKED_UP, engine, together};

/// A race for one element: somebody waits for it, it comes, and somebody else asks for it without waiting.
struct Race {
    name: &'static str,
    /// What is run before each round.
    before: &'static [&'static str],
    waits: &'static str,
    /// Run by one client, as a transaction if it is more than one command.
    brings: &'static [&'static str],
    takes: &'static str,
    /// What the taker is answered while there is nothing.
    nothing: &'static str,
    /// What the reply of who has waited ends with.
    served: &'static str,
}

const RACES: &[Race] = &[
    Race {
        name: "one of two lists",
        before: &[],
        waits: "BLPOP k other 0",
        brings: &["RPUSH k x"],
        takes: "LPOP k",
        nothing: "$-1\r\n",
        served: "$1\r\nk\r\n$1\r\nx\r\n",
    },
    Race {
        name: "by a transaction",
        before: &[],
        waits: "BRPOP other k 0",
        brings: &["SET s 1", "LPUSH k x", "INCR s"],
        takes: "RPOP k",
        nothing: "$-1\r\n",
        served: "$1\r\nk\r\n$1\r\nx\r\n",
    },
    Race {
        name: "by a script that declares nothing",
        before: &[],
        waits: "BLMPOP 0 2 k other LEFT",
        brings: &["EVAL redis.call('SET','s',1)redis.call('RPUSH','k','x') 0"],
        takes: "LMPOP 1 k LEFT",
        nothing: "*-1\r\n",
        served: "$1\r\nk\r\n*1\r\n$1\r\nx\r\n",
    },
    Race {
        name: "by another name",
        before: &["RPUSH old x"],
        waits: "BLPOP k 0",
        brings: &["RENAME old k"],
        takes: "LPOP k",
        nothing: "$-1\r\n",
        served: "$1\r\nx\r\n",
    },
    Race {
        name: "from another database",
        before: &["SELECT 1", "RPUSH k x", "SELECT 0"],
        waits: "BLPOP k 0",
        brings: &["SWAPDB 0 1"],
        takes: "LPOP k",
        nothing: "$-1\r\n",
        served: "$1\r\nx\r\n",
    },
    Race {
        name: "to another list",
        before: &["DEL to"],
        waits: "BLMOVE k to LEFT RIGHT 0",
        brings: &["RPUSH k x"],
        takes: "LPOP k",
        nothing: "$-1\r\n",
        served: "$1\r\nx\r\n",
    },
    Race {
        name: "to another list, by a script that declares nothing",
        before: &["DEL to"],
        waits: "BRPOPLPUSH k to 0",
        brings: &["EVAL redis.call('SET','s',1)redis.call('RPUSH','k','x') 0"],
        takes: "LPOP k",
        nothing: "$-1\r\n",
        served: "$1\r\nx\r\n",
    },
    Race {
        name: "one of two sorted sets",
        before: &[],
        waits: "BZPOPMIN k other 0",
        brings: &["ZADD k 1 x"],
        takes: "ZPOPMIN k",
        nothing: "*0\r\n",
        served: "$1\r\nk\r\n$1\r\nx\r\n$1\r\n1\r\n",
    },
    Race {
        name: "a stored sorted set",
        before: &["ZADD source 1 x"],
        waits: "BZMPOP 0 2 other k MAX",
        brings: &["ZUNIONSTORE k 1 source"],
        takes: "ZPOPMAX k",
        nothing: "*0\r\n",
        served: "$1\r\nk\r\n*1\r\n*2\r\n$1\r\nx\r\n$1\r\n1\r\n",
    },
    Race {
        name: "an entry of a group",
        before: &["DEL k", "XGROUP CREATE k g $ MKSTREAM"],
        waits: "XREADGROUP GROUP g first BLOCK 0 STREAMS k >",
        brings: &["XADD k 1-1 f x"],
        takes: "XREADGROUP GROUP g second STREAMS k >",
        nothing: "*-1\r\n",
        served: "*2\r\n$1\r\nf\r\n$1\r\nx\r\n",
    },
];

/// Whoever asks without waiting, again and again while an element comes, never gets it: somebody has waited for it.
#[test]
fn who_has_waited_is_served_before_anybody_else_sees_the_element() {
    const ROUNDS: usize = 400;
    for race in RACES {
        let engine = engine();
        let begin = Arc::new(Barrier::new(4));
        let waiter = {
            let begin = Arc::clone(&begin);
            move |mut client: Client| {
                for round in 0..ROUNDS {
                    race.before.iter().for_each(|command| _ = client.run(command));
                    assert_eq!(client.run(race.waits), "", "{}: there is nothing yet", race.name);
                    begin.wait();
                    begin.wait();
                    let answer = client.answer().unwrap_or_else(|| panic!("{}, round {round}: not served", race.name));
                    assert!(answer.ends_with(race.served), "{}: {answer:?}", race.name);
                }
            }
        };
        let bringer = {
            let begin = Arc::clone(&begin);
            move |mut client: Client| {
                for _ in 0..ROUNDS {
                    begin.wait();
                    match race.brings {
                        [one] => assert!(!client.run(one).starts_with('-'), "{}", race.name),
                        more => assert!(client.transaction(more).starts_with('*'), "{}", race.name),
                    }
                    begin.wait();
                }
            }
        };
        let taker = {
            let begin = Arc::clone(&begin);
            move |mut client: Client| {
                for round in 0..ROUNDS {
                    begin.wait();
                    // Before, within and behind the change.
                    for _ in 0..20 {
                        assert_eq!(client.run(race.takes), race.nothing, "{}, round {round}", race.name);
                    }
                    begin.wait();
                }
            }
        };
        together(&engine, vec![Box::new(waiter), Box::new(bringer), Box::new(taker.clone()), Box::new(taker)]);
    }
}

/// A key whose shard has a higher index than another's, which it differs from.
fn key_above(engine: &Engine, other: &str) -> String {
    let index = |key: &str| engine.shards.index(engine.shards.hash(key.as_bytes()));
    let mut keys = (0..).map(|number| format!("key{number}"));
    keys.find(|key| index(key) > index(other)).expect("one of so many")
}

/// Runs `command` on a thread of its own.
fn begin(engine: &Arc<Engine>, index: usize, command: String) -> std::sync::mpsc::Receiver<String> {
    let (done, wait) = channel();
    let engine = Arc::clone(engine);
    thread::spawn(move || done.send(Client::new(&engine, index).run(&command)));
    wait
}

/// To serve a client that waits for several keys only the one is needed that has changed.
#[test]
fn who_waits_for_several_keys_is_served_although_another_shard_is_held() {
    let engine = engine();
    let other = (0..).map(|n| format!("key{n}")).find(|key| {
        let index = |key: &str| engine.shards.index(engine.shards.hash(key.as_bytes()));
        index(key) != index("k")
    });
    let other = other.expect("one of so many");
    let (mut waiter, mut taker) = (Client::new(&engine, 0), Client::new(&engine, 1));
    assert_eq!(waiter.run(&format!("BLPOP {other} k 0")), "");
    let held = engine.shards.lock(engine.shards.index(engine.shards.hash(other.as_bytes())));
    let pushed = begin(&engine, 2, "RPUSH k x".to_owned());
    assert_eq!(pushed.recv_timeout(LOCKED_UP).as_deref(), Ok(":1\r\n"), "it waits for a shard that it does not need");
    assert_eq!(waiter.answer().as_deref(), Some("*2\r\n$1\r\nk\r\n$1\r\nx\r\n"));
    assert_eq!(taker.run("LPOP k"), "$-1\r\n");
    drop(held);
    // A later tick takes it out of the queue of the key whose shard was held.
    taker.tick();
    assert!((0..engine.shards.count()).all(|index| engine.shards.lock(index).watched.is_none()));
}

/// An element that goes on to a list whose shard somebody holds is seen by nobody before.
#[test]
fn an_element_that_is_to_be_moved_is_not_seen_before() {
    for by in ["RPUSH", "script"] {
        let engine = engine();
        let source = key_above(&engine, "to");
        let (mut waiter, mut taker) = (Client::new(&engine, 0), Client::new(&engine, 1));
        assert_eq!(waiter.run(&format!("BLMOVE {source} to LEFT LEFT 0")), "");
        let held = engine.shards.lock(engine.shards.index(engine.shards.hash(b"to")));
        let pushed = match by {
            "RPUSH" => begin(&engine, 2, format!("RPUSH {source} x")),
            _ => begin(&engine, 2, format!("EVAL return(redis.call('RPUSH',KEYS[1],'x')) 1 {source}")),
        };
        // It waits as well, or finds nothing.
        thread::sleep(Duration::from_millis(10));
        let taken = begin(&engine, 3, format!("LPOP {source}"));
        thread::sleep(Duration::from_millis(10));
        assert!(pushed.try_recv().is_err() && waiter.answer().is_none(), "{by}: it has nowhere to go yet");
        drop(held);
        assert_eq!(pushed.recv_timeout(LOCKED_UP).as_deref(), Ok(":1\r\n"));
        assert_eq!(taken.recv_timeout(LOCKED_UP).as_deref(), Ok("$-1\r\n"), "{by}: somebody has waited for it");
        assert_eq!(waiter.answer().as_deref(), Some("$1\r\nx\r\n"));
        assert_eq!((taker.run("LPOP to").as_str(), taker.run("LPOP to").as_str()), ("$1\r\nx\r\n", "$-1\r\n"));
        assert!((0..engine.shards.count()).all(|index| {
            let state = engine.shards.lock(index);
            state.watched.is_none() && !state.shard.reaches_further()
        }));
    }
}

/// What moves on and on goes all the way in one step, whoever looks on.
#[test]
fn a_chain_of_moves_is_one_step() {
    const ROUNDS: usize = 300;
    const MOVES: [&str; 4] =
        ["BLMOVE a b LEFT LEFT 0", "BLMOVE b c LEFT LEFT 0", "BLMOVE c d LEFT LEFT 0", "BLPOP d 0"];
    let engine = engine();
    let begin = Arc::new(Barrier::new(3));
    let pusher = {
        let begin = Arc::clone(&begin);
        move |mut client: Client| {
            let mut waiters: Vec<_> = (0..4).map(|index| Client::new(&client.engine, 4 + index)).collect();
            for _ in 0..ROUNDS {
                for (waiter, wait) in waiters.iter_mut().zip(MOVES) {
                    assert_eq!(waiter.run(wait), "");
                }
                begin.wait();
                assert_eq!(client.run("RPUSH a x"), ":1\r\n");
                for waiter in waiters.iter_mut() {
                    assert!(waiter.answer().expect("all are served").ends_with("$1\r\nx\r\n"));
                }
                begin.wait();
            }
        }
    };
    let looker = |command: &'static str| {
        let begin = Arc::clone(&begin);
        move |mut client: Client| {
            for _ in 0..ROUNDS {
                begin.wait();
                for _ in 0..20 {
                    assert_eq!(client.run(command), ":0\r\n");
                }
                begin.wait();
            }
        }
    };
    let parts: Vec<Box<dyn FnOnce(Client) + Send>> =
        vec![Box::new(pusher), Box::new(looker("EXISTS a b c d")), Box::new(looker("LLEN b"))];
    together(&engine, parts);
}

/// Moves in a circle, with pushes from all sides: nobody waits for ever, and every element is in one place.
#[test]
fn moves_in_a_circle_never_lock_up() {
    const EACH: usize = 1_500;
    let engine = engine();
    let mover = |command: &'static str| {
        move |mut client: Client| {
            let mut moved = 0;
            while moved < EACH {
                let answer = match client.run(command) {
                    answer if answer.is_empty() => loop {
                        if let Some(answer) = client.answer() {
                            break answer;
                        }
                        thread::yield_now();
                    },
                    answer => answer,
                };
                assert!(answer.ends_with("x\r\n"), "{answer:?}");
                moved += 1;
            }
        }
    };
    let pusher = |commands: &'static [&'static str]| {
        move |mut client: Client| {
            for round in 0..EACH {
                let reply = client.run(commands[round % commands.len()]);
                assert!(reply.starts_with(':') || reply.starts_with("+OK"), "{reply:?}");
            }
        }
    };
    let parts: Vec<Box<dyn FnOnce(Client) + Send>> = vec![
        Box::new(mover("BLMOVE a b LEFT RIGHT 0")),
        Box::new(mover("BLMOVE b c LEFT RIGHT 0")),
        Box::new(mover("BLMOVE c a RIGHT LEFT 0")),
        Box::new(pusher(&["RPUSH a x", "LPUSH b x", "RPUSH c x"])),
        Box::new(pusher(&["EVAL redis.call('SET','s',1)return(redis.call('RPUSH','c','x')) 0", "LPUSH a x"])),
        Box::new(pusher(&["EVAL redis.call('SET','s',1)return(redis.call('LPUSH','b','x')) 1 s", "RPUSH b x"])),
    ];
    together(&engine, parts);
    let mut client = Client::new(&engine, 0);
    let left: usize = ["a", "b", "c"]
        .iter()
        .map(|list| client.run(&format!("LLEN {list}"))[1..].trim_end().parse::<usize>().expect("a length"))
        .sum();
    assert_eq!(left, 3 * EACH, "moves neither lose an element nor double it");
}

//! Subscribing in both protocols, what comes of it, and what else may be asked meanwhile. Messages come by themselves, so
//! each step waits for the answer to a PING behind it.

use crate::grammar::{Grammar, Request};
use crate::reply::Reply;
use crate::sides::{Side, sides};
use tenon_testkit::random::Random;

const CASES: usize = 150;

const REQUESTS: &str = "
    SUBSCRIBE $channel { $channel }
    UNSUBSCRIBE { $channel }
    PSUBSCRIBE $channels { $channels }
    PUNSUBSCRIBE { $channels }
    SSUBSCRIBE $channel { $channel }
    SUNSUBSCRIBE { $channel }
    PUBLISH $channel $value
    SPUBLISH $channel $value
    PUBSUB ( CHANNELS | SHARDCHANNELS ) $channels
    PUBSUB ( NUMSUB | SHARDNUMSUB ) { $channel }
    PUBSUB NUMPAT
    PING
    PING $value
    GET s1
    SET s1 $value
    HELLO ( 2 | 3 )
    RESET
    QUIT
    CLIENT NO-EVICT ON
    SELECT 1
    NOSUCH
    ECHO
";

/// What a request brings in: all that comes before the answer to the PING behind it.
fn converse(side: &mut Side, number: usize, request: &Request, step: usize) -> Vec<Reply> {
    let mark = format!("mark-{step}");
    let connection = side.connection(number);
    connection.send(&[request, &vec![b"PING".to_vec(), mark.clone().into_bytes()]]);
    let mut replies = Vec::new();
    loop {
        let reply = connection.receive();
        let is_mark = |reply: &Reply| reply.text() == Some(mark.as_bytes());
        let is_last = is_mark(&reply) || reply.elements().get(1).is_some_and(is_mark);
        replies.push(reply);
        if replies.last() == Some(&Reply::Closed) {
            side.forget(number);
            return replies;
        }
        if is_last {
            return replies;
        }
    }
}

#[test]
fn messages() {
    let Some(mut sides) = sides() else { return };
    let grammar = Grammar::new(&[REQUESTS]);
    let times = std::env::var("TENON_RANDOM_TIMES").map_or(1, |text| text.parse().expect("a number"));
    let mut random = Random(0x7e40_0012);
    for case in 0..CASES * times {
        let mut history = Vec::new();
        sides.iter_mut().for_each(Side::reset);
        for step in 0..30 {
            let number = usize::from(random.one_in(3));
            let request = grammar.request(&mut random);
            let name = request[0].to_ascii_uppercase();
            history.push(format!("[{number}] {}", request.join(&b' ').escape_ascii()));
            let answers = sides.each_mut().map(|side| comparable(&name, converse(side, number, &request, step)));
            assert_eq!(answers[0], answers[1], "case {case}, Tenon's answers on the left: {history:#?}");
        }
    }
}

/// What can be compared of what came: of HELLO that it was answered; who is told first where all are left is not said, nor
/// in which order a RESP3 client gets what it has caused itself.
fn comparable(name: &[u8], mut replies: Vec<Reply>) -> Vec<Reply> {
    if name == b"HELLO" {
        replies.retain(|reply| !matches!(reply, Reply::Many(b'*' | b'%', all) if all.len() > 4));
    }
    if name == b"PUBSUB" {
        replies = replies.into_iter().map(|reply| reply.sorted(1)).collect();
    }
    if name.ends_with(b"UNSUBSCRIBE") {
        let last = |reply: &Reply| reply.elements().last().cloned();
        let mut counts: Vec<Reply> = replies.iter().filter_map(last).collect();
        counts.sort();
        for reply in &mut replies {
            if let Reply::Many(_, all) = reply {
                all.pop();
            }
        }
        replies.extend(counts);
    }
    replies.sort();
    replies
}

//! Patterns and names made to cost much time: they end soon enough for a patient client. Knows no algorithm.

use crate::support::{MIB, assert_alive, resp, tenon, within_memory};
use tenon_client::Value;

fn text(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

#[test]
fn globs_with_many_stars_end() {
    // CVE-2022-36021 and CVE-2024-31228: a matcher that backtracks needs more than the universe's age for these.
    let server = tenon(&[]);
    let mut client = resp(&server);
    let name = "a".repeat(50_000);
    client.call(&[b"SET", name.as_bytes(), b"v"]).expect("stored");
    let stars = "a*".repeat(5_000);
    let questions = "*?".repeat(2_000);
    let classes = "*[a-b]".repeat(2_000);
    let hopeless = [format!("{stars}b"), format!("{questions}b"), format!("{classes}b"), "*".repeat(100_000) + "b"];
    for pattern in &hopeless {
        assert_eq!(client.call(&[b"KEYS", pattern.as_bytes()]).expect("an answer"), Value::Array(vec![]));
        let page = client.call(&[b"SCAN", b"0", b"MATCH", pattern.as_bytes(), b"COUNT", b"1000"]).expect("an answer");
        assert_eq!(page, Value::Array(vec![text("0"), Value::Array(vec![])]));
        assert_eq!(client.call(&[b"CONFIG", b"GET", pattern.as_bytes()]).expect("an answer"), Value::Array(vec![]));
    }
    // The same patterns without their last letter do match.
    let pattern = stars.as_bytes();
    assert_eq!(client.call(&[b"KEYS", pattern]).expect("an answer"), Value::Array(vec![text(&name)]));
    for broken in ["[", "[a", "[a-", "\\", "[\\", "[^", "*[", "[]", "[z-a]"] {
        let answer = client.call(&[b"KEYS", broken.as_bytes()]).expect("an answer");
        assert_eq!(answer, Value::Array(vec![]), "{broken}");
    }
    assert_alive(&server);
}

#[test]
fn names_that_collide_elsewhere_do_not_collide_here() {
    // Names that share every bit but a few, and those that FNV, DJB2 and CRC16 give one hash: the hash is seeded and
    // looks at everything, so that they are stored as fast as any others. A table that chained them all up would need
    // minutes; that it grows by a bounded amount of memory shows that it is not widened to keep them apart either.
    let server = tenon(&[]);
    let mut client = resp(&server);
    // In DJB2 "Ez" and "FY" have one hash, and so has every string of such pairs.
    let colliding = |number: u32| -> Vec<u8> {
        (0..17).flat_map(|bit| if number >> bit & 1 == 0 { *b"Ez" } else { *b"FY" }).collect()
    };
    let count = 100_000;
    within_memory(&server, 64 * MIB, || {
        for from in (0..count).step_by(1_000) {
            let names: Vec<Vec<u8>> = (from..from + 1_000).map(colliding).collect();
            let commands: Vec<[&[u8]; 3]> = names.iter().map(|name| [b"SET".as_slice(), name, name]).collect();
            let commands: Vec<&[&[u8]]> = commands.iter().map(|command| command.as_slice()).collect();
            let answers = client.pipeline(&commands).expect("answers");
            assert!(answers.iter().all(|answer| *answer == Value::Simple(b"OK".to_vec())));
        }
    });
    assert_eq!(client.call(&[b"DBSIZE"]).expect("an answer"), Value::Int(i64::from(count)));
    let name = colliding(77_777);
    assert_eq!(client.call(&[b"GET", &name]).expect("an answer"), Value::Bulk(name));
    assert_alive(&server);
}

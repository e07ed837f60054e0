//! What is measured command by command, on the servers that its answers come from.

use super::{bench, ended, installed, scratch, text};
use crate::toy::{Manners, Toy};
use tenon_bench::examples::FAMILIES;
use tenon_bench::peers::find;

#[test]
fn every_example_is_answered_as_it_says() {
    if !installed("redis-server") || !installed("memcached") {
        return;
    }
    let out = scratch("examples");
    // Where all of the workspace is built, Tenon lies beside the bench.
    let peers =
        if find(&["tenon".to_owned()]).is_ok() { "redis-server,memcached,tenon" } else { "redis-server,memcached" };
    let words = ["commands", "--quick", "--seconds", "0.01", "--peers", peers, "--json"];
    let output = ended(bench(&out, &words));
    assert!(output.status.success(), "{}", text(&output));
    let records: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let examples: usize = FAMILIES.iter().map(|(_, examples)| examples.len()).sum();
    for server in peers.split(',') {
        let own = records.iter().filter(|record| record["server"] == server);
        let (measured, unknown): (Vec<_>, Vec<_>) =
            own.partition(|record| record["figures"]["server_cpu_us"].as_f64().is_some_and(|cpu_us| cpu_us > 0.0));
        match server {
            "tenon" => assert_eq!((measured.len(), unknown.len()), (examples, 0), "{unknown:?}"),
            "memcached" => assert!(measured.len() > 30 && unknown.is_empty(), "{unknown:?}"),
            // Of newer commands an older server says that it does not know them.
            _ => assert!(measured.len() > 200 && unknown.len() < 10, "{unknown:?}"),
        }
        assert!(unknown.iter().all(|record| record["notes"].to_string().contains("unknown to it")), "{unknown:?}");
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn servers_are_held_against_one_another() {
    if !installed("memcached") {
        return;
    }
    let out = scratch("rivals");
    let same = find(&["memcached".to_owned()]).expect("it is there").programs.remove(0).path;
    let peers = format!("memcached,memcached-other={}", same.display());
    let words = ["commands", "--quick", "--seconds", "0.01", "--peers", &peers, "--filter", "meta, me,"];
    let output = ended(bench(&out, &words));
    let said = text(&output);
    assert!(output.status.success() && said.contains("| server CPU µs/op / least of others |"), "{said}");
    let row = said.lines().find(|line| line.starts_with("| memcached-other | ")).expect("a row of it");
    assert!(row.contains("| meta, me, one of 10,000 keys ("), "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

#[test]
fn nobody_elses_keys_are_thrown_away() {
    let out = scratch("foreign");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    let output = ended(bench(&out, &["commands", "--target", &target, "--quick"]));
    let said = text(&output);
    assert!(output.status.code() == Some(1) && said.contains("needs servers that the bench starts itself"), "{said}");
    std::fs::remove_dir_all(out).expect("it can go");
}

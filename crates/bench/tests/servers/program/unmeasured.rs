//! What the program says where there is less to show than was asked for.

use super::{SHORT, bench, installed, scratch, text};
use crate::ended::ended;
use crate::toy::{Manners, Toy};

#[test]
fn an_experiment_that_only_says_why_nothing_was_measured_fails() {
    let out = scratch("unmeasured");
    let toy = Toy::start(Manners::Good);
    let target = format!("redis://{}", toy.address);
    for experiment in ["records", "pagerank"] {
        let run = |words: &[&str]| {
            let words = [&[experiment], words, &SHORT[..]].concat();
            let mut command = bench(&out, &words);
            command.env("PYSPARK_PYTHON", out.join("none"));
            ended(command)
        };
        let output = run(&["--target", &target]);
        let said = text(&output);
        assert!(output.status.code() == Some(1) && said.contains("spark"), "{said}");
        assert!(
            said.contains("nothing was measured: this experiment needs servers that the bench starts itself"),
            "{said}"
        );
        if !installed("memcached") {
            continue;
        }
        let said = text(&run(&["--peers", "memcached", "--filter", "RDD"]));
        assert!(said.contains("of what --filter asks for nothing can be: not measured: "), "{said}");
    }
    std::fs::remove_dir_all(out).expect("it can go");
}

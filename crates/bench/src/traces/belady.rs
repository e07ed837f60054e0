//! The best that a cache could have done had it known the future. Knows no server.

use super::Trace;
use std::collections::BTreeSet;

/// How often requests found their object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hits {
    /// The share of requests.
    pub requests: f64,
    /// The share of bytes.
    pub bytes: f64,
}

/// Belady's rule with a limit of bytes: the objects whose next request is farthest away go, the new one too if that is it.
/// With objects of one size it is the optimum; with several it is what is usually shown as the limit.
pub fn best(trace: &Trace, limit: u64) -> Hits {
    const NEVER: usize = usize::MAX;
    // When each request's object is asked for again.
    let mut next_of = vec![NEVER; trace.requests.len()];
    let mut seen = vec![NEVER; trace.sizes.len()];
    for (at, object) in trace.requests.iter().enumerate().rev() {
        next_of[at] = std::mem::replace(&mut seen[*object as usize], at);
    }
    // What is kept, by when it is asked for again.
    let mut kept: BTreeSet<(usize, u32)> = BTreeSet::new();
    let (mut bytes_kept, mut hits, mut bytes_hit, mut bytes_all) = (0u64, 0u64, 0u64, 0u64);
    for (at, object) in trace.requests.iter().enumerate() {
        let size = u64::from(trace.sizes[*object as usize]);
        bytes_all += size;
        if kept.remove(&(at, *object)) {
            hits += 1;
            bytes_hit += size;
            bytes_kept -= size;
        }
        if next_of[at] == NEVER || size > limit {
            continue;
        }
        kept.insert((next_of[at], *object));
        bytes_kept += size;
        while bytes_kept > limit
            && let Some((_, farthest)) = kept.pop_last()
        {
            bytes_kept -= u64::from(trace.sizes[farthest as usize]);
        }
    }
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    Hits { requests: share(hits, trace.requests.len() as u64), bytes: share(bytes_hit, bytes_all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::{Random, Zipfian};

    #[test]
    fn the_textbooks_example_comes_out() {
        // Seven misses of twenty with three frames, where going round everything is kept that is used soonest; this rule may
        // also keep a new object out, which textbooks' pages cannot.
        let requests = vec![7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        let trace = Trace { requests, sizes: vec![1; 8] };
        let hits = (best(&trace, 3).requests * 20.0).round();
        assert!((11.0..=12.0).contains(&hits), "{hits}");
        assert_eq!(best(&trace, 8).requests, 14.0 / 20.0);
        assert_eq!(best(&trace, 0), Hits::default());
    }

    #[test]
    fn it_beats_the_least_recently_used() {
        let (mut random, mut zipfian) = (Random::new(1), Zipfian::new(1_000, 0.9));
        let requests: Vec<u32> = (0..20_000).map(|_| zipfian.next(&mut random) as u32).collect();
        let trace = Trace { requests, sizes: vec![10; 1_000] };
        let mut order: Vec<u32> = Vec::new();
        let mut hits = 0;
        for object in &trace.requests {
            if let Some(at) = order.iter().position(|kept| kept == object) {
                order.remove(at);
                hits += 1;
            }
            order.push(*object);
            if order.len() > 100 {
                order.remove(0);
            }
        }
        let (best, lru) = (best(&trace, 1_000), f64::from(hits) / 20_000.0);
        assert!(best.requests > lru + 0.05, "{best:?} {lru}");
        assert!((best.requests - best.bytes).abs() < 1e-9);
    }
}

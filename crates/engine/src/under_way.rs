//! Keys that are being moved to another server, which takes its time. Knows no network.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

type Keys = HashSet<(usize, Vec<u8>)>;

/// Which keys are under way, each in its database.
#[derive(Clone, Debug, Default)]
pub struct KeysUnderWay(Arc<Mutex<Keys>>);

impl KeysUnderWay {
    /// Claims keys of a database, all or none: `None` where somebody has one of them already.
    pub fn claim(&self, database: usize, keys: impl Iterator<Item = Vec<u8>>) -> Option<ClaimedKeys> {
        let keys: Vec<_> = keys.map(|key| (database, key)).collect();
        let mut under_way = self.0.lock();
        if keys.iter().any(|key| under_way.contains(key)) {
            return None;
        }
        under_way.extend(keys.iter().cloned());
        Some(ClaimedKeys { keys, all: self.clone() })
    }
}

/// Keys that are nobody else's until this is dropped.
#[derive(Debug)]
pub struct ClaimedKeys {
    keys: Vec<(usize, Vec<u8>)>,
    all: KeysUnderWay,
}

impl Drop for ClaimedKeys {
    fn drop(&mut self) {
        let mut under_way = self.all.0.lock();
        self.keys.iter().for_each(|key| _ = under_way.remove(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_claim_s_at_a_time() {
        let all = KeysUnderWay::default();
        let claim = |database, keys: &[&str]| all.claim(database, keys.iter().map(|key| key.as_bytes().to_vec()));
        let first = claim(0, &["a", "b"]).expect("nobody has them");
        assert!(claim(0, &["c", "b"]).is_none());
        let _second = claim(0, &["c"]).expect("a claim that failed has claimed nothing");
        assert!(claim(1, &["a"]).is_some(), "it is another key");
        drop(first);
        assert!(claim(0, &["a", "b"]).is_some());
    }
}

//! Sessions of TLS that clients may take up again: the newest, up to a number. Knows nothing of what is in them.

use parking_lot::Mutex;
use rustls::server::StoresServerSessions;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// So many are remembered where no number is named: OpenSSL sets no limit then, but forgets each after some minutes. Each
/// takes some 300 bytes, more with the client's certificate, and strangers may begin as many as they like.
const UNNAMED_MAX: usize = 262_144;

/// Takes memory for the sessions that there are: rustls's own has it for all that there may be from the start.
pub(super) struct Sessions {
    max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_id: HashMap<Arc<[u8]>, Session>,
    /// Ids by the numbers of their sessions: the first is the oldest.
    by_age: BTreeMap<u64, Arc<[u8]>>,
    next_number: u64,
}

struct Session {
    number: u64,
    content: Box<[u8]>,
}

impl Sessions {
    /// None yet, and never more than so many; 0 names no number.
    pub(super) fn at_most(max: u32) -> Sessions {
        let max = if max == 0 { UNNAMED_MAX } else { max as usize };
        Sessions { max, kept: Mutex::default() }
    }
}

impl Kept {
    fn remove(&mut self, id: &[u8]) -> Option<Box<[u8]>> {
        let session = self.by_id.remove(id)?;
        let named = self.by_age.remove(&session.number);
        debug_assert!(named.is_some_and(|named| *named == *id), "a session's number is that of another");
        Some(session.content)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, id: Vec<u8>, content: Vec<u8>) -> bool {
        let mut kept = self.kept.lock();
        kept.remove(&id);
        if kept.by_id.len() == self.max
            && let Some((_, oldest)) = kept.by_age.pop_first()
        {
            kept.by_id.remove(&oldest);
        }
        let (number, id) = (kept.next_number, Arc::<[u8]>::from(id));
        kept.next_number += 1;
        kept.by_age.insert(number, Arc::clone(&id));
        kept.by_id.insert(id, Session { number, content: content.into() });
        debug_assert!(kept.by_id.len() == kept.by_age.len() && kept.by_id.len() <= self.max);
        true
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.kept.lock().by_id.get(id).map(|session| session.content.to_vec())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.kept.lock().remove(id).map(Vec::from)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Without what is in them, which is secret.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("max", &self.max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(sessions: &Sessions, id: u32) {
        assert!(sessions.put(id.to_le_bytes().to_vec(), vec![id as u8; 100]));
    }

    fn is_kept(sessions: &Sessions, id: u32) -> bool {
        sessions.get(&id.to_le_bytes()).is_some_and(|content| content == [id as u8; 100])
    }

    #[test]
    fn the_oldest_make_room() {
        let sessions = Sessions::at_most(3);
        for id in 0..5 {
            put(&sessions, id);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|id| is_kept(&sessions, id)), [false, false, true, true, true]);
        // What is taken is gone, and its place is free.
        assert_eq!(sessions.take(&3_u32.to_le_bytes()), Some(vec![3; 100]));
        assert_eq!(sessions.take(&3_u32.to_le_bytes()), None);
        put(&sessions, 5);
        assert_eq!([2, 3, 4, 5].map(|id| is_kept(&sessions, id)), [true, false, true, true]);
        // The same once more is the newest.
        put(&sessions, 2);
        put(&sessions, 6);
        assert_eq!([2, 4, 5, 6].map(|id| is_kept(&sessions, id)), [true, false, true, true]);
    }

    #[test]
    fn memory_is_taken_for_those_that_there_are() {
        let sessions = Sessions::at_most(i32::MAX as u32);
        assert_eq!(sessions.kept.lock().by_id.capacity(), 0);
        for id in 0..100_000 {
            put(&sessions, id);
            // One that is never taken up keeps none of those behind it in memory.
            if id > 0 {
                sessions.take(&id.to_le_bytes());
            }
        }
        let kept = sessions.kept.lock();
        assert!((kept.by_id.len(), kept.by_age.len()) == (1, 1) && kept.by_id.capacity() < 10);
    }

    #[test]
    fn no_number_is_many_and_not_all() {
        let sessions = Sessions::at_most(0);
        let many = UNNAMED_MAX as u32;
        for id in 0..=many {
            put(&sessions, id);
        }
        assert_eq!([0, 1, many].map(|id| is_kept(&sessions, id)), [false, true, true]);
    }
}

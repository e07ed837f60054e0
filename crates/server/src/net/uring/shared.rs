//! Descriptors that others wait on, too, each in a place whose number is the tag of the wait for it. Knows no ring.
//!
//! ```text
//!            add                begin_waits
//!   free ----------> to begin <-------------> in flight      watched
//!     ^                  |       wait_ended       |
//!     |                  | remove                 | remove
//!     |   begin_waits    v                        v
//!     +------------- to begin                 in flight      watched no more
//!     ^                                           |
//!     +-------------------------------------------+
//!                      wait_ended
//! ```
//!
//! What ends a wait names its place, so that is free only behind the end of its wait.

use rustix::fd::OwnedFd;

/// What is watched, and its token.
type Watched = (OwnedFd, u64);

#[derive(Default)]
pub(super) struct Shared {
    /// Empty where something was watched.
    places: Vec<Option<Watched>>,
    /// Those whose wait is to begin, or was.
    to_begin: Vec<u32>,
    free: Vec<u32>,
}

impl Shared {
    /// Watches a descriptor: a wait for it is to begin.
    pub(super) fn add(&mut self, fd: OwnedFd, token: u64) {
        let tag = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[tag as usize] = Some((fd, token));
        self.to_begin.push(tag);
    }

    /// Watches one no more; gives its tag, as a wait for it that is in flight is to end.
    pub(super) fn remove(&mut self, token: u64) -> Option<u32> {
        let is_meant = |place: &Option<Watched>| place.as_ref().is_some_and(|(_, watched)| *watched == token);
        let index = self.places.iter().position(is_meant)?;
        self.places[index] = None;
        Some(index as u32)
    }

    /// Begins the waits that are to begin.
    pub(super) fn begin_waits(&mut self, mut begin: impl FnMut(&OwnedFd, u32)) {
        for tag in self.to_begin.drain(..) {
            match &self.places[tag as usize] {
                Some((fd, _)) => begin(fd, tag),
                None => self.free.push(tag),
            }
        }
    }

    /// Notes that a wait has ended; gives the token of what it was for, if that is still watched.
    pub(super) fn wait_ended(&mut self, tag: u32) -> Option<u64> {
        match &self.places[tag as usize] {
            Some((_, token)) => {
                self.to_begin.push(tag);
                Some(*token)
            }
            None => {
                self.free.push(tag);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn socket() -> OwnedFd {
        UdpSocket::bind("127.0.0.1:0").expect("a port").into()
    }

    /// The waits that begin.
    fn begun(shared: &mut Shared) -> Vec<u32> {
        let mut tags = Vec::new();
        shared.begin_waits(|_, tag| tags.push(tag));
        tags
    }

    #[test]
    fn a_place_is_used_again_when_its_wait_has_ended() {
        let mut shared = Shared::default();
        shared.add(socket(), 7);
        assert_eq!(begun(&mut shared), [0]);
        assert_eq!(shared.remove(7), Some(0));
        // Its end is still to come, and is not the end of the next one's wait.
        shared.add(socket(), 7);
        assert_eq!(begun(&mut shared), [1]);
        assert_eq!(shared.wait_ended(0), None);
        shared.add(socket(), 8);
        assert_eq!(begun(&mut shared), [0]);
        assert_eq!((shared.wait_ended(1), shared.wait_ended(0)), (Some(7), Some(8)));
        // What was to be waited for anew has no end to come.
        assert_eq!((shared.remove(8), shared.remove(8)), (Some(0), None));
        assert_eq!(begun(&mut shared), [1]);
        shared.add(socket(), 9);
        assert_eq!(begun(&mut shared), [0]);
        assert_eq!(shared.places.len(), 2);
    }

    #[test]
    fn no_more_places_than_are_watched_at_a_time() {
        let mut shared = Shared::default();
        let mut in_flight = Vec::new();
        for round in 0..200 {
            // As all are watched anew, those before are still waited for.
            (0..3).for_each(|token| _ = shared.remove(token));
            (0..3).for_each(|token| shared.add(socket(), token));
            if round % 5 > 0 {
                in_flight.append(&mut begun(&mut shared));
            }
            let mut distinct = in_flight.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), in_flight.len(), "a place has one wait at a time");
            if round % 3 > 0 {
                in_flight.drain(..).for_each(|tag| _ = shared.wait_ended(tag));
            }
        }
        assert!(shared.places.len() <= 12, "{} places", shared.places.len());
    }
}

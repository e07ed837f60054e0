//! The deadlines of some of a collection's members: in one run while they are few, in a table of runs afterwards. A table
//! does not go back, like the forms of collections.

use super::buckets::Buckets;
use super::run::Run;

/// The latest deadline that a member can have, in milliseconds since the UNIX epoch: the year 4199. It is Redis's bound
/// (`HFE_MAX_ABS_TIME_MSEC`).
pub const MEMBER_DEADLINE_MAX_MS: u64 = (1 << 46) - 1;

/// Members in one run, at most: a search passes over the others.
const FEW: usize = 64;
/// Bytes of one run beyond which there is a table.
const FEW_BYTES: usize = 2_048;

/// The deadlines of those members that have one.
#[derive(Clone, Debug)]
pub struct MemberDeadlines(Form);

#[derive(Clone, Debug)]
enum Form {
    Few(Run),
    Many(Box<Buckets>),
}

impl Default for MemberDeadlines {
    fn default() -> MemberDeadlines {
        MemberDeadlines(Form::Few(Run::default()))
    }
}

impl From<Run> for MemberDeadlines {
    fn from(run: Run) -> MemberDeadlines {
        MemberDeadlines(Form::Few(run))
    }
}

impl MemberDeadlines {
    /// Whether they are so few that they may lie in an entry.
    pub(in crate::types) fn are_few(&self) -> bool {
        matches!(self.0, Form::Few(_))
    }

    /// How many members have a deadline.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Few(run) => run.len(),
            Form::Many(buckets) => buckets.len(),
        }
    }

    /// Whether none has one.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Few(run) => run.is_empty(),
            Form::Many(buckets) => buckets.len() == 0,
        }
    }

    /// The deadline of a member in milliseconds since the UNIX epoch.
    pub fn of(&self, member: &[u8]) -> Option<u64> {
        match &self.0 {
            Form::Few(run) => run.of(member),
            Form::Many(buckets) => buckets.of(member),
        }
    }

    /// The first deadline.
    pub fn next_ms(&self) -> Option<u64> {
        match &self.0 {
            Form::Few(run) => run.first_ms(),
            Form::Many(buckets) => buckets.first_ms(),
        }
    }

    /// How many deadlines are past; does not count on once it has counted so many. Redis keeps a member through the
    /// millisecond of its deadline.
    pub fn past(&self, now_ms: u64, at_most: usize) -> usize {
        match &self.0 {
            Form::Few(run) => run.iter().filter(|&(_, deadline_ms)| deadline_ms < now_ms).count().min(at_most),
            Form::Many(buckets) => buckets.past(now_ms, at_most),
        }
    }

    /// Whether all deadlines are past.
    pub fn are_past(&self, now_ms: u64) -> bool {
        match &self.0 {
            Form::Few(run) => run.iter().all(|(_, deadline_ms)| deadline_ms < now_ms),
            Form::Many(buckets) => buckets.are_past(now_ms),
        }
    }

    /// Gives a member a deadline.
    ///
    /// # Panics
    /// When it is later than [`MEMBER_DEADLINE_MAX_MS`].
    pub fn set(&mut self, member: &[u8], deadline_ms: u64) {
        assert!(deadline_ms <= MEMBER_DEADLINE_MAX_MS, "a deadline is checked where it is read");
        match &mut self.0 {
            Form::Few(run) => {
                if run.set(member, deadline_ms).is_none() && (run.used() > FEW_BYTES || run.len() > FEW) {
                    self.0 = Form::Many(Box::new(Buckets::from(std::mem::take(run))));
                }
            }
            Form::Many(buckets) => buckets.set(member, deadline_ms),
        }
    }

    /// Takes a member's deadline away; tells whether it had one.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match &mut self.0 {
            Form::Few(run) => run.remove(member).is_some(),
            Form::Many(buckets) => buckets.remove(member),
        }
    }

    /// Takes out deadlines that are past, at most so many, and hands their members to `visit`; tells how many there were.
    pub fn take_past(&mut self, now_ms: u64, at_most: usize, visit: &mut dyn FnMut(&[u8])) -> usize {
        match &mut self.0 {
            Form::Few(run) => run.take_past(now_ms, at_most, visit),
            Form::Many(buckets) => buckets.take_past(now_ms, at_most, visit),
        }
    }

    /// Calls `visit` with members that have a deadline and with that, from a place on (0 at the start) until there have
    /// been so many; a few more may follow. Gives the place to go on from, `None` at the end. Between two calls the
    /// deadlines must not change.
    pub fn for_each_from(&self, place: usize, at_least: usize, visit: &mut dyn FnMut(&[u8], u64)) -> Option<usize> {
        match &self.0 {
            Form::Few(run) => {
                run.iter().for_each(|(member, deadline_ms)| visit(member, deadline_ms));
                None
            }
            Form::Many(buckets) => buckets.for_each_from(place, at_least, visit),
        }
    }

    /// Gives back room of the one run that they are in while they are few: it may have been made for longer ones.
    pub(in crate::types) fn fit(&mut self) {
        if let Form::Few(run) = &mut self.0 {
            run.shrink();
        }
    }

    /// How many allocations there are to free.
    pub fn allocations(&self) -> usize {
        match &self.0 {
            Form::Few(_) => 1,
            Form::Many(buckets) => buckets.allocations(),
        }
    }

    /// Bytes of memory, those of this itself included.
    pub fn memory(&self) -> usize {
        size_of::<MemberDeadlines>()
            + match &self.0 {
                Form::Few(run) => run.capacity(),
                Form::Many(buckets) => buckets.memory(),
            }
    }
}

//! Reading and changing a collection: what every change of one entails is done here. Knows no particular type.

use super::{Deadline, KeyCx};
use crate::command::Effect;
use crate::errors::CmdError;
use crate::large::SizeBefore;
use crate::notify::EventClass;
use tenon_store::Slot;
use tenon_store::entry::{NewValue, ValueRef};
use tenon_store::types::Collection;

/// What a change of a collection came to.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Change<R> {
    result: R,
    extent: Extent,
    event: Option<&'static str>,
    second_event: Option<&'static str>,
    /// As how many changes it counts.
    times: usize,
}

/// How much of a collection has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Nothing,
    /// What belongs to it, but not what those see who read it.
    Aside,
    /// The same, of which those are told who wait for the key.
    Awaited,
    Elements,
}

impl<R> Change<R> {
    /// Nothing: the collection is as it was.
    pub fn nothing(result: R) -> Change<R> {
        Change { result, extent: Extent::Nothing, event: None, second_event: None, times: 0 }
    }

    /// The collection has changed; `event` is what keyspace notifications call it (`hset`, `lpush`).
    pub fn made(event: &'static str, result: R) -> Change<R> {
        Change { result, extent: Extent::Elements, event: Some(event), second_event: None, times: 1 }
    }

    /// `made` when `changed`, else `nothing`.
    pub fn when(changed: bool, event: &'static str, result: R) -> Change<R> {
        if changed { Change::made(event, result) } else { Change::nothing(result) }
    }

    /// What belongs to the collection has changed, such as a stream's consumers, but nothing of what those see who read
    /// it: who watches the key, waits for it, or keeps what was read, is not told. Keyspace notifications may have a
    /// name for it all the same.
    pub fn aside(event: Option<&'static str>, result: R) -> Change<R> {
        Change { result, extent: Extent::Aside, event, second_event: None, times: 1 }
    }

    /// `aside`, but those who wait for the key look again: what they wait for may be gone, such as a consumer
    /// group, or there, such as an entry to claim.
    pub fn awaited(event: Option<&'static str>, result: R) -> Change<R> {
        Change { extent: Extent::Awaited, ..Change::aside(event, result) }
    }

    /// The same, which counts as so many changes (for save points), as in Redis: mostly one for each element.
    pub fn times(self, times: usize) -> Change<R> {
        Change { times, ..self }
    }

    /// The same, where perhaps something else has happened as well, of which another event tells.
    pub fn and(self, second_event: Option<&'static str>) -> Change<R> {
        Change { second_event, ..self }
    }
}

/// The collection that a value is.
///
/// # Errors
/// When it is of another type.
#[inline]
pub fn view_of<T: Collection>(value: ValueRef<'_>) -> Result<T::View<'_>, CmdError> {
    value.collection::<T>().ok_or(CmdError::WrongType)
}

impl KeyCx<'_> {
    /// The collection, for reading: an access, counted as a hit or a miss.
    ///
    /// # Errors
    /// When the key holds another type.
    #[inline]
    pub fn read_collection<T: Collection>(&mut self) -> Result<Option<T::View<'_>>, CmdError> {
        match self.find_for_read() {
            Some(slot) => self.collection::<T>(slot).map(Some),
            None => Ok(None),
        }
    }

    /// The collection in a slot.
    ///
    /// # Errors
    /// When it holds another type.
    #[inline]
    pub fn collection<T: Collection>(&self, slot: Slot) -> Result<T::View<'_>, CmdError> {
        view_of::<T>(self.entry(slot).value())
    }

    /// Changes the collection, which is made if the key is not there. A key whose collection has become empty goes;
    /// one that stays empty or unchanged is not made.
    ///
    /// A change that is `Change::nothing`, or an error, must have left the collection as it was.
    ///
    /// # Errors
    /// When the key holds another type, and those of `change`.
    pub fn update<T: Collection, R>(
        &mut self,
        change: impl FnOnce(&mut T) -> Result<Change<R>, CmdError>,
    ) -> Result<(R, Effect), CmdError> {
        let slot = self.find_for_write();
        self.update_at(slot, change)
    }

    /// The same for who has [looked](KeyCx::find_for_write) for the key just before, and found it or not.
    ///
    /// # Errors
    /// As for [`update`](KeyCx::update).
    pub fn update_at<T: Collection, R>(
        &mut self,
        slot: Option<Slot>,
        change: impl FnOnce(&mut T) -> Result<Change<R>, CmdError>,
    ) -> Result<(R, Effect), CmdError> {
        match slot {
            Some(slot) => self.update_in(slot, change),
            None => {
                let mut collection = T::default();
                let Change { result, extent, event, second_event, times } = change(&mut collection)?;
                if extent == Extent::Nothing {
                    return Ok((result, Effect::Unchanged));
                }
                if collection.is_empty() {
                    // It came and has gone, as far as those can tell who are told of events or count changes.
                    self.count_changes(times as i64);
                    self.notify(EventClass::NEW, "new");
                    self.notify_of::<T>([event, second_event]);
                    self.notify(EventClass::GENERIC, "del");
                    return Ok((result, Effect::Unchanged));
                }
                self.store_collection(None, collection);
                self.count_changes(times as i64 - 1);
                self.notify_of::<T>([event, second_event]);
                Ok((result, Effect::Verbatim))
            }
        }
    }

    /// Changes the collection if the key is there; `None` when it is not.
    ///
    /// # Errors
    /// As for [`update`](KeyCx::update).
    pub fn update_existing<T: Collection, R>(
        &mut self,
        change: impl FnOnce(&mut T) -> Result<Change<R>, CmdError>,
    ) -> Result<Option<(R, Effect)>, CmdError> {
        match self.find_for_write() {
            Some(slot) => self.update_in(slot, change).map(Some),
            None => Ok(None),
        }
    }

    /// The same for a command to which the key counts as one that is read: as a hit or a miss (XACK).
    ///
    /// # Errors
    /// As for [`update`](KeyCx::update).
    pub fn update_read<T: Collection, R>(
        &mut self,
        change: impl FnOnce(&mut T) -> Result<Change<R>, CmdError>,
    ) -> Result<Option<(R, Effect)>, CmdError> {
        match self.find_for_read() {
            Some(slot) => self.update_in(slot, change).map(Some),
            None => Ok(None),
        }
    }

    /// Changes the collection in a slot that was [looked](KeyCx::find_for_write) for just before.
    ///
    /// # Errors
    /// As for [`update`](KeyCx::update).
    pub fn update_in<T: Collection, R>(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut T) -> Result<Change<R>, CmdError>,
    ) -> Result<(R, Effect), CmdError> {
        let mut scratch = std::mem::take(&mut self.worker.packed_scratch);
        let (result, extent, events, is_empty, times) = match self.entry(slot).value() {
            ValueRef::Packed(form, bytes) => {
                scratch.clear();
                scratch.extend_from_slice(bytes);
                let mut collection = T::from_packed(form, scratch).ok_or(CmdError::WrongType)?;
                let Change { result, extent, event, second_event, times } = change(&mut collection)?;
                let is_empty = collection.is_empty();
                if extent != Extent::Nothing && !is_empty {
                    self.store_collection(Some(slot), collection);
                } else {
                    self.keep_scratch(collection);
                }
                (result, extent, [event, second_event], is_empty, times)
            }
            ValueRef::Object(_) => {
                self.worker.packed_scratch = scratch;
                let mut entry = self.entry_mut(slot);
                let object = entry.object().expect("the value is an object");
                let size = SizeBefore::now();
                let collection = T::of_object_mut(object).ok_or(CmdError::WrongType)?;
                let did_expire = collection.expires_in_part();
                let Change { result, extent, event, second_event, times } = change(collection)?;
                let is_empty = collection.is_empty();
                let expires = did_expire || collection.expires_in_part();
                match extent {
                    Extent::Nothing => {}
                    Extent::Aside => {
                        if expires {
                            self.members_changed(slot);
                        }
                        self.worker.stats.changed();
                    }
                    Extent::Awaited => {
                        self.note_size(slot, size);
                        self.worker.stats.changed();
                        self.wake_waiting();
                    }
                    Extent::Elements if is_empty => {}
                    Extent::Elements => {
                        self.note_size(slot, size);
                        if expires {
                            self.members_changed(slot);
                        }
                        self.changed();
                    }
                }
                (result, extent, [event, second_event], is_empty, times)
            }
            ValueRef::Bytes(_) | ValueRef::Int(_) => return Err(CmdError::WrongType),
        };
        if extent == Extent::Nothing {
            return Ok((result, Effect::Unchanged));
        }
        self.count_changes(times as i64 - 1);
        self.notify_of::<T>(events);
        if is_empty {
            let entry = self.take(slot);
            self.worker.discard(entry);
            self.notify(EventClass::GENERIC, "del");
        }
        Ok((result, Effect::Verbatim))
    }

    #[inline]
    fn notify_of<T: Collection>(&mut self, events: [Option<&'static str>; 2]) {
        for event in events.into_iter().flatten() {
            self.notify(const { EventClass::of_type(T::VALUE_TYPE) }, event);
        }
    }

    /// Gives the key another collection in place of whatever it holds (SUNIONSTORE and its like), which is what `event`
    /// says; an empty one removes the key. The deadline goes.
    pub fn replace_with<T: Collection>(&mut self, event: &'static str, collection: T) -> Effect {
        let slot = self.find();
        if !collection.is_empty() {
            let displaced = self.displaced(slot);
            self.note_overwritten(slot);
            self.put_collection(slot, collection, Deadline::Clear);
            self.notify_displaced(displaced, T::VALUE_TYPE);
            self.notify(const { EventClass::of_type(T::VALUE_TYPE) }, event);
            return Effect::Verbatim;
        }
        let was_there = self.delete();
        if was_there {
            self.notify(EventClass::GENERIC, "del");
        }
        Effect::when(was_there)
    }

    /// Takes the whole collection in a slot away, when all of its elements were given to the client: `event`, then the
    /// key goes. It is freed when no shard is locked.
    pub fn take_collection<T: Collection>(&mut self, slot: Slot, event: &'static str) -> Effect {
        let entry = self.take(slot);
        self.worker.discard(entry);
        self.notify(const { EventClass::of_type(T::VALUE_TYPE) }, event);
        self.notify(EventClass::GENERIC, "del");
        Effect::Verbatim
    }

    fn store_collection<T: Collection>(&mut self, slot: Option<Slot>, collection: T) {
        self.put_collection(slot, collection, Deadline::Keep);
    }

    fn put_collection<T: Collection>(&mut self, slot: Option<Slot>, collection: T, deadline: Deadline) {
        let (_, allocation) = NewValue::of_collection(collection, |value| self.store(slot, value, deadline, 0, None));
        if let Some(bytes) = allocation {
            self.worker.packed_scratch = bytes;
        }
    }

    /// Keeps a packed collection's allocation for the next one that is changed.
    fn keep_scratch<T: Collection>(&mut self, collection: T) {
        if let Some(bytes) = collection.into_packed_bytes() {
            self.worker.packed_scratch = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Machine};
    use crate::engine::Engine;
    use tenon_store::types::{Hash, HashLimits};

    const LIMITS: HashLimits = HashLimits { fields: 40, bytes: 64 };

    /// Sets and removes fields of one hash, and tells what each step came to.
    fn play(steps: impl IntoIterator<Item = (bool, Vec<u8>)>) -> (Engine, Vec<Effect>) {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        let hash = engine.shards.hash(b"k");
        let effects = steps
            .into_iter()
            .map(|(set, field)| {
                engine.with_key(&mut worker, 0, hash, b"k", |cx| {
                    let changed = cx.update(|hash: &mut Hash| {
                        let changed = if set { hash.set(&field, b"v", LIMITS) } else { hash.remove(&field) };
                        Ok(Change::when(changed, "hset", ()))
                    });
                    changed.expect("the key holds a hash").1
                })
            })
            .collect();
        (engine, effects)
    }

    fn len(engine: &Engine) -> Option<usize> {
        let mut worker = engine.worker(0);
        engine.with_key(&mut worker, 0, engine.shards.hash(b"k"), b"k", |cx| {
            cx.read_collection::<Hash>().expect("the key holds a hash").map(|hash| hash.len())
        })
    }

    #[test]
    fn an_unchanged_collection_is_not_made_and_an_empty_one_goes() {
        let (engine, effects) = play([(false, b"f".to_vec())]);
        assert_eq!((effects, len(&engine)), (vec![Effect::Unchanged], None));
        let (engine, effects) = play([(true, b"f".to_vec()), (true, b"f".to_vec()), (false, b"f".to_vec())]);
        assert_eq!(effects, [Effect::Verbatim, Effect::Unchanged, Effect::Verbatim]);
        assert_eq!(len(&engine), None);
    }

    #[test]
    fn a_growing_collection_leaves_its_entry() {
        // Past the bytes that an entry takes while still packed, then past the fields that stay packed, and back.
        let field = |number: usize| vec![b'a' + (number % 26) as u8; 20 + number];
        for count in [1, 30, 40, 41, 60] {
            let (engine, effects) = play((0..count).map(|number| (true, field(number))));
            assert!(effects.iter().all(|&effect| effect == Effect::Verbatim));
            assert_eq!(len(&engine), Some(count));
            let steps = (0..count).map(|number| (true, field(number))).chain((0..count).map(|at| (false, field(at))));
            assert_eq!(len(&play(steps).0), None);
        }
    }

    #[test]
    fn deadlines_of_a_small_collection_lie_in_its_entry() {
        let (engine, _) = play((b'a'..=b'j').map(|field| (true, vec![field])));
        let mut worker = engine.worker(0);
        engine.with_key(&mut worker, 0, engine.shards.hash(b"k"), b"k", |cx| {
            let later = cx.now_ms() + 100_000;
            let mut change = |field: &[u8], deadline_ms: Option<u64>| {
                let changed = cx.update(|hash: &mut Hash| {
                    match deadline_ms {
                        Some(deadline_ms) => hash.set_deadline(field, deadline_ms),
                        None => assert!(hash.persist(field)),
                    }
                    Ok(Change::made("hexpire", ()))
                });
                assert_eq!(changed.expect("the key holds a hash").1, Effect::Verbatim);
                let slot = cx.find().expect("the key is there");
                let entry = cx.entry(slot);
                let ValueRef::Packed(form, _) = entry.value() else { panic!("it is small") };
                let of = |field| entry.value().deadlines().and_then(|deadlines| deadlines.of(field));
                (form.has_deadlines, entry.members_due_ms(), of(b"c"), of(b"j"))
            };
            assert_eq!(change(b"c", Some(later + 1)), (true, Some(later + 1), Some(later + 1), None));
            assert_eq!(change(b"j", Some(later)), (true, Some(later), Some(later + 1), Some(later)));
            assert_eq!(change(b"j", None), (true, Some(later + 1), Some(later + 1), None));
            assert_eq!(change(b"c", None), (false, None, None, None));
        });
    }

    #[test]
    fn another_type_is_left_alone() {
        let engine = Engine::new(Config::new(Machine::detect()), &[], 1);
        let mut worker = engine.worker(0);
        engine.with_key(&mut worker, 0, engine.shards.hash(b"k"), b"k", |cx| {
            cx.set(NewValue::Int(7), Deadline::Clear);
            let outcome = cx.update(|_: &mut Hash| Ok(Change::made("hset", ())));
            assert_eq!(outcome.err(), Some(CmdError::WrongType));
            assert_eq!(cx.read_collection::<Hash>().err(), Some(CmdError::WrongType));
            assert!(matches!(cx.read_string(), Ok(Some(ValueRef::Int(7)))));
        });
    }
}

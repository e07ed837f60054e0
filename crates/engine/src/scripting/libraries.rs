//! The function libraries that the server knows. Knows no Lua.

use super::reaching::Reaching;
use crate::errors::CmdError;
use parking_lot::{Mutex, MutexGuard};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenon_script::FunctionInfo;

/// A function of a library.
#[derive(Debug)]
pub struct Function {
    /// What it says about itself.
    pub info: FunctionInfo,
    /// How far it has reached.
    pub reaching: Reaching,
}

/// A library.
#[derive(Debug)]
pub struct Library {
    /// Its name.
    pub name: Vec<u8>,
    /// Its text, the first line too.
    pub code: Box<[u8]>,
    /// Its functions, in the order of their names.
    pub functions: Vec<Arc<Function>>,
}

impl Library {
    /// A library with these functions.
    pub fn new(name: Vec<u8>, code: &[u8], functions: impl IntoIterator<Item = FunctionInfo>) -> Library {
        let mut functions: Vec<_> =
            functions.into_iter().map(|info| Arc::new(Function { info, reaching: Reaching::new() })).collect();
        functions.sort_by(|a, b| a.info.name.cmp(&b.info.name));
        Library { name, code: code.into(), functions }
    }

    /// The function of exactly this name.
    pub(super) fn function(&self, name: &[u8]) -> Option<&Arc<Function>> {
        let place = self.functions.binary_search_by(|function| function.info.name[..].cmp(name));
        place.ok().map(|place| &self.functions[place])
    }
}

/// All libraries at one time. Function names are alike in any case.
#[derive(Clone, Debug, Default)]
pub struct Shelf {
    libraries: BTreeMap<Vec<u8>, Arc<Library>>,
    /// The functions by their names in lower case, each with its library.
    functions: HashMap<Vec<u8>, (Arc<Function>, Arc<Library>)>,
    /// How many libraries have been taken away.
    removed: u64,
}

impl Shelf {
    /// The libraries, in the order of their names.
    pub fn libraries(&self) -> impl ExactSizeIterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    /// The library of this name.
    pub fn library(&self, name: &[u8]) -> Option<&Arc<Library>> {
        self.libraries.get(name)
    }

    /// Whether there is a library of this name.
    pub fn has(&self, name: &[u8]) -> bool {
        self.libraries.contains_key(name)
    }

    /// How many functions there are.
    pub fn function_count(&self) -> usize {
        self.libraries.values().map(|library| library.functions.len()).sum()
    }

    /// Adds a library in the place of one with the same name.
    ///
    /// # Errors
    /// When another library has a function of the same name.
    pub fn add(&mut self, library: Arc<Library>) -> Result<(), CmdError> {
        let replaced = self.remove(&library.name);
        let taken =
            library.functions.iter().find(|function| self.functions.contains_key(&*folded(&function.info.name)));
        if let Some(taken) = taken {
            let name = String::from_utf8_lossy(&taken.info.name).into_owned();
            if let Some(replaced) = replaced {
                self.insert(replaced);
            }
            return Err(CmdError::new(format!("ERR Function {name} already exists")));
        }
        self.insert(library);
        Ok(())
    }

    fn insert(&mut self, library: Arc<Library>) {
        for function in &library.functions {
            let name = folded(&function.info.name).into_owned();
            self.functions.insert(name, (Arc::clone(function), Arc::clone(&library)));
        }
        self.libraries.insert(library.name.clone(), library);
    }

    /// Takes a library away.
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<Library>> {
        let library = self.libraries.remove(name)?;
        for function in &library.functions {
            self.functions.remove(&*folded(&function.info.name));
        }
        self.removed += 1;
        Some(library)
    }

    /// Takes all libraries away.
    pub fn clear(&mut self) {
        self.removed += self.libraries.len() as u64;
        self.libraries.clear();
        self.functions.clear();
    }
}

/// A function's name as it is compared.
pub(crate) fn folded(name: &[u8]) -> Cow<'_, [u8]> {
    if name.iter().any(u8::is_ascii_uppercase) { name.to_ascii_lowercase().into() } else { name.into() }
}

/// The libraries, and how many have been taken away.
#[derive(Debug, Default)]
pub struct Libraries {
    shelf: Mutex<Arc<Shelf>>,
    /// Held from a change until it is in the log: no shard's lock keeps libraries from changing. Taken behind shards, and
    /// who holds it waits for none.
    order: Mutex<()>,
    removed: AtomicU64,
}

impl Libraries {
    /// Keeps others from changing libraries, so that changes stand in the log in their order. For who holds all shards, as
    /// every transaction does that changes some: nobody has it for long then.
    pub(crate) fn keep_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock()
    }

    /// The same for who holds none, if it can be had in so long: a transaction has it to its end.
    pub(crate) fn try_keep_order(&self, at_most: Duration) -> Option<MutexGuard<'_, ()>> {
        self.order.try_lock_for(at_most)
    }

    /// Goes up with each library that is taken away or replaced.
    pub(crate) fn removed(&self) -> u64 {
        self.removed.load(Ordering::Acquire)
    }

    /// All libraries as they are now. Who keeps them has the next change copy them all.
    pub fn shelf(&self) -> Arc<Shelf> {
        Arc::clone(&self.shelf.lock())
    }

    /// Changes the libraries. A change that fails has to leave them as they were.
    ///
    /// # Errors
    /// Those of the change.
    pub fn change<R>(&self, change: impl FnOnce(&mut Shelf) -> Result<R, CmdError>) -> Result<R, CmdError> {
        let mut shelf = self.shelf.lock();
        let result = change(Arc::make_mut(&mut shelf));
        self.removed.store(shelf.removed, Ordering::Release);
        result
    }

    /// Whether there is a library of this name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.shelf.lock().has(name)
    }

    /// The function of a name, in any case.
    pub fn function(&self, name: &[u8]) -> Option<Arc<Function>> {
        self.shelf.lock().functions.get(&*folded(name)).map(|(function, _)| Arc::clone(function))
    }

    /// The library that has the function of a name, in any case.
    pub(crate) fn library_of(&self, function: &[u8]) -> Option<Arc<Library>> {
        self.shelf.lock().functions.get(&*folded(function)).map(|(_, library)| Arc::clone(library))
    }

    /// Bytes of memory that their texts and tables take.
    pub fn memory(&self) -> usize {
        let shelf = self.shelf();
        let library = |library: &Arc<Library>| {
            let names = library.functions.iter().map(|function| 2 * function.info.name.len()).sum::<usize>();
            library.code.len() + 2 * library.name.len() + names + library.functions.len() * size_of::<Function>()
        };
        shelf.libraries().map(library).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_script::ScriptFlags;

    fn library(name: &str, functions: &[&str]) -> Arc<Library> {
        let info =
            |name: &&str| FunctionInfo { name: name.as_bytes().to_vec(), description: None, flags: ScriptFlags::NONE };
        Arc::new(Library::new(name.as_bytes().to_vec(), b"", functions.iter().map(info)))
    }

    #[test]
    fn a_change_copies_nothing_unless_somebody_reads_what_was_before() {
        let libraries = Libraries::default();
        let add = |library: Arc<Library>| libraries.change(|shelf| shelf.add(library));
        let place = || Arc::as_ptr(&libraries.shelf());
        let at_first = place();
        for number in 0..100 {
            let name = format!("l{number}");
            add(library(&name, &[&name])).expect("its names are free");
        }
        assert_eq!(place(), at_first);
        let kept = libraries.shelf();
        add(library("more", &["more"])).expect("its names are free");
        assert_ne!(place(), at_first);
        assert_eq!((kept.libraries().len(), libraries.shelf().libraries().len()), (100, 101));
    }

    #[test]
    fn functions_know_their_library_and_what_fails_changes_nothing() {
        let libraries = Libraries::default();
        let add = |library: Arc<Library>| libraries.change(|shelf| shelf.add(library));
        let library_of = |name: &[u8]| libraries.library_of(name).map(|library| library.name.clone());
        add(library("a", &["F", "g"])).expect("its names are free");
        add(library("b", &["h"])).expect("its names are free");
        assert_eq!(libraries.removed(), 0);
        assert_eq!(
            add(library("b", &["f", "i"])).map_err(|error| error.to_string()),
            Err("ERR Function f already exists".into())
        );
        assert_eq!(
            ["f", "G", "h", "i"].map(|name| library_of(name.as_bytes())),
            [Some(b"a".to_vec()), Some(b"a".to_vec()), Some(b"b".to_vec()), None]
        );
        let before = libraries.removed();
        add(library("b", &["i"])).expect("its names are free");
        assert_eq!((library_of(b"h"), library_of(b"I")), (None, Some(b"b".to_vec())));
        assert_eq!(libraries.removed(), before + 1);
        let emptied = libraries.change(|shelf| {
            shelf.clear();
            Ok(())
        });
        emptied.expect("emptying does not fail");
        assert_eq!((libraries.removed(), libraries.has(b"a"), library_of(b"f")), (before + 3, false, None));
    }
}

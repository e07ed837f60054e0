//! What a language must be able to say. Knows no language.

use crate::key::Key;
use crate::load::Statement;
use anyhow::Result;

/// What a reply says and how many bytes it has; `None` while part of it is missing, an error if it is none or says one.
pub type Read<T> = Result<Option<(T, usize)>>;

/// Is shown each value by its key's index; `None` for a miss.
pub type Each<'a> = &'a mut dyn FnMut(usize, Option<&[u8]>) -> Result<()>;

/// Gets, sets and deletes in one language.
pub trait Dialect: Copy + Send + Sync + 'static {
    /// What each connection to PostgreSQL prepares.
    fn statements(self) -> Vec<Statement> {
        Vec::new()
    }

    /// Appends a request for one value.
    fn write_get(self, key: &[u8], out: &mut Vec<u8>);

    /// Appends one request, or several that are answered one after another, for several values.
    fn write_get_many(self, keys: &[Key], out: &mut Vec<u8>);

    /// Appends a request to store a value; `expire_s` of 0 for ever.
    fn write_set(self, key: &[u8], value: &[u8], expire_s: u32, out: &mut Vec<u8>);

    /// Appends a request to delete.
    fn write_delete(self, key: &[u8], out: &mut Vec<u8>);

    /// The value in the reply to a get, `None` for a miss.
    fn read_get<'a>(self, input: &'a [u8], key: &[u8]) -> Read<Option<&'a [u8]>>;

    /// Shows each value of the reply to a get of several, by the key's index, in order. May be called again for the same
    /// reply when more of it has come.
    fn read_get_many(self, input: &[u8], keys: &[Key], each: Each<'_>) -> Read<()>;

    /// The reply to a set; that it was not stored is an error.
    fn read_set(self, input: &[u8]) -> Read<()>;

    /// How many bytes the reply has, if all of it has come and it says that a set was refused for want of memory.
    fn out_of_memory(self, input: &[u8]) -> Option<usize>;

    /// The reply to a set by whom a refusal for want of memory is expected: whether it was stored. All else that is not a
    /// stored value is an error, as in [`Dialect::read_set`].
    #[inline]
    fn read_fill(self, input: &[u8]) -> Read<bool> {
        match self.out_of_memory(input) {
            Some(len) => Ok(Some((false, len))),
            None => Ok(self.read_set(input)?.map(|((), len)| (true, len))),
        }
    }

    /// Whether there was something to delete.
    fn read_delete(self, input: &[u8]) -> Read<bool>;
}

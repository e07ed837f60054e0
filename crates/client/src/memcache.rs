//! A connection that speaks memcached's classic text protocol. Knows neither the meta nor the binary dialect.

use crate::stream::Input;
use crate::{Address, Stream};
use std::io::{self, Write};
use std::time::Duration;

/// A value as memcached keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key.
    pub key: Vec<u8>,
    /// The client's own flags.
    pub flags: u32,
    /// The value.
    pub value: Vec<u8>,
    /// The item's CAS token, which only `gets` and `gats` tell.
    pub cas: Option<u64>,
}

/// What became of a store request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// The value is stored.
    Stored,
    /// The condition of `add`, `replace`, `append` or `prepend` was not met.
    NotStored,
    /// For `cas`: the item has changed since its token was given.
    Exists,
    /// For `cas`: there is no such item.
    NotFound,
}

/// The store verbs that take no CAS token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    /// Store in any case.
    Set,
    /// Store only where nothing is.
    Add,
    /// Store only where something is.
    Replace,
    /// Add behind the value that is there.
    Append,
    /// Add before the value that is there.
    Prepend,
}

impl StoreVerb {
    fn name(self) -> &'static str {
        match self {
            StoreVerb::Set => "set",
            StoreVerb::Add => "add",
            StoreVerb::Replace => "replace",
            StoreVerb::Append => "append",
            StoreVerb::Prepend => "prepend",
        }
    }
}

/// Which way a counter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `incr`, which wraps at 2^64.
    Up,
    /// `decr`, which stops at 0.
    Down,
}

/// A connection to a server that speaks memcached's text protocol.
///
/// A line that means an error (`ERROR`, `CLIENT_ERROR ...`, `SERVER_ERROR ...`) or that is not understood becomes an
/// `io::Error` of kind `Other` whose text is that line. Keys are sent as they are: one with a blank or a control
/// character in it is another request.
#[derive(Debug)]
pub struct Memcache {
    stream: Stream,
    input: Input,
    output: Vec<u8>,
}

impl Memcache {
    /// Connects to an address as [`Address`] reads it, e.g. `127.0.0.1:11211` or `unix:/path`.
    ///
    /// # Errors
    /// `InvalidInput` when the text is no address, else what the system says.
    pub fn connect(address: &str) -> io::Result<Memcache> {
        Memcache::connect_to(&address.parse()?, None)
    }

    /// Connects; `timeout` bounds the handshake and every later read and write.
    ///
    /// # Errors
    /// What the system says.
    pub fn connect_to(address: &Address, timeout: Option<Duration>) -> io::Result<Memcache> {
        let memcache = Memcache::over(Stream::connect(address, timeout)?);
        memcache.set_timeout(timeout)?;
        Ok(memcache)
    }

    /// Speaks over a stream that is already connected.
    pub fn over(stream: Stream) -> Memcache {
        Memcache { stream, input: Input::default(), output: Vec::new() }
    }

    /// Bounds every following read and write; `None` waits for ever.
    ///
    /// # Errors
    /// For a timeout of zero.
    pub fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(timeout)?;
        self.stream.set_write_timeout(timeout)
    }

    /// The item under `key`, without its CAS token.
    ///
    /// # Errors
    /// When the connection is lost or the server answers an error.
    pub fn get(&mut self, key: &[u8]) -> io::Result<Option<Item>> {
        Ok(self.retrieve(b"get", &[key])?.pop())
    }

    /// The item under `key`, with its CAS token.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn gets(&mut self, key: &[u8]) -> io::Result<Option<Item>> {
        Ok(self.retrieve(b"gets", &[key])?.pop())
    }

    /// The items that are there of all `keys`, in that order, with one request.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn multiget(&mut self, keys: &[&[u8]]) -> io::Result<Vec<Item>> {
        self.retrieve(b"get", keys)
    }

    /// Gives the item under `key` and sets when it expires: seconds from now, or past 30 days a UNIX time.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn gat(&mut self, key: &[u8], exptime_s: i64) -> io::Result<Option<Item>> {
        Ok(self.retrieve(format!("gat {exptime_s}").as_bytes(), &[key])?.pop())
    }

    /// Stores `value` by a verb's rule. `exptime_s`: seconds from now, past 30 days a UNIX time, 0 for never.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn store(
        &mut self,
        verb: StoreVerb,
        key: &[u8],
        value: &[u8],
        flags: u32,
        exptime_s: i64,
    ) -> io::Result<Stored> {
        self.put_store(verb.name(), key, &format!("{flags} {exptime_s} {}", value.len()), value);
        self.flush_output()?;
        self.read_stored()
    }

    /// Stores `value` in any case; see [`Memcache::store`].
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn set(&mut self, key: &[u8], value: &[u8], flags: u32, exptime_s: i64) -> io::Result<Stored> {
        self.store(StoreVerb::Set, key, value, flags, exptime_s)
    }

    /// Stores `value` if the item still has the CAS token `cas`.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn cas(&mut self, key: &[u8], value: &[u8], flags: u32, exptime_s: i64, cas: u64) -> io::Result<Stored> {
        self.put_store("cas", key, &format!("{flags} {exptime_s} {} {cas}", value.len()), value);
        self.flush_output()?;
        self.read_stored()
    }

    /// Sends all values with `noreply` and without waiting; an error of the server's shows on the next read.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn set_many_noreply(&mut self, items: &[(&[u8], &[u8])], flags: u32, exptime_s: i64) -> io::Result<()> {
        for (key, value) in items {
            self.put_store("set", key, &format!("{flags} {exptime_s} {} noreply", value.len()), value);
        }
        self.flush_output()
    }

    /// Adds to or takes from a counter; `None` where no item is.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn count(&mut self, direction: Direction, key: &[u8], delta: u64) -> io::Result<Option<u64>> {
        let verb: &[u8] = match direction {
            Direction::Up => b"incr ",
            Direction::Down => b"decr ",
        };
        let line = self.exchange(&[verb, key, format!(" {delta}").as_bytes()].concat())?;
        if line == b"NOT_FOUND" {
            return Ok(None);
        }
        // Servers may pad a shrunken number with blanks.
        let number = std::str::from_utf8(&line).ok().and_then(|text| text.trim_end().parse().ok());
        number.map(Some).ok_or_else(|| refused(&line))
    }

    /// Deletes the item; tells whether there was one.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn delete(&mut self, key: &[u8]) -> io::Result<bool> {
        let line = self.exchange(&[b"delete ", key].concat())?;
        found(&line, b"DELETED")
    }

    /// Sets when the item expires, as for [`Memcache::store`]; tells whether there was one.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn touch(&mut self, key: &[u8], exptime_s: i64) -> io::Result<bool> {
        let line = self.exchange(&[b"touch ", key, format!(" {exptime_s}").as_bytes()].concat())?;
        found(&line, b"TOUCHED")
    }

    /// Empties the store now.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn flush_all(&mut self) -> io::Result<()> {
        match self.exchange(b"flush_all")?.as_slice() {
            b"OK" => Ok(()),
            line => Err(refused(line)),
        }
    }

    /// The version the server tells.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn version(&mut self) -> io::Result<String> {
        let line = self.exchange(b"version")?;
        let version = line.strip_prefix(b"VERSION ").ok_or_else(|| refused(&line))?;
        Ok(String::from_utf8_lossy(version).into_owned())
    }

    /// The server's statistics, of the named group if any.
    ///
    /// # Errors
    /// Those of [`Memcache::get`].
    pub fn stats(&mut self, group: Option<&str>) -> io::Result<Vec<(String, String)>> {
        self.send_line(group.map_or("stats".to_owned(), |group| format!("stats {group}")).as_bytes())?;
        let mut stats = Vec::new();
        loop {
            let line = self.receive_line()?;
            if line == b"END" {
                return Ok(stats);
            }
            let text = String::from_utf8_lossy(&line).into_owned();
            let stat = text.strip_prefix("STAT ").ok_or_else(|| refused(&line))?;
            let (name, value) = stat.split_once(' ').unwrap_or((stat, ""));
            stats.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Sends a line and gives the one line that answers it.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn exchange(&mut self, line: &[u8]) -> io::Result<Vec<u8>> {
        self.send_line(line)?;
        self.receive_line()
    }

    /// Sends a line; its end is added.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn send_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.output.extend_from_slice(line);
        self.output.extend_from_slice(b"\r\n");
        self.flush_output()
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the connection is lost.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits for a line and gives it without its end.
    ///
    /// # Errors
    /// When the connection is lost; `UnexpectedEof` when the server has closed it.
    pub fn receive_line(&mut self) -> io::Result<Vec<u8>> {
        let mut searched = 0;
        loop {
            let unread = self.input.unread();
            if let Some(at) = unread[searched..].iter().position(|&byte| byte == b'\n') {
                let end = searched + at;
                let line = unread[..end].strip_suffix(b"\r").unwrap_or(&unread[..end]).to_vec();
                self.input.consume(end + 1);
                return Ok(line);
            }
            searched = unread.len();
            self.input.read_more(&mut self.stream)?;
        }
    }

    /// Waits for `len` bytes.
    ///
    /// # Errors
    /// Those of [`Memcache::receive_line`].
    pub fn receive_exact(&mut self, len: usize) -> io::Result<Vec<u8>> {
        while self.input.unread().len() < len {
            self.input.read_more(&mut self.stream)?;
        }
        let bytes = self.input.unread()[..len].to_vec();
        self.input.consume(len);
        Ok(bytes)
    }

    /// The stream below, e.g. to half-close it.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    fn retrieve(&mut self, verb: &[u8], keys: &[&[u8]]) -> io::Result<Vec<Item>> {
        self.output.extend_from_slice(verb);
        for key in keys {
            self.output.push(b' ');
            self.output.extend_from_slice(key);
        }
        self.output.extend_from_slice(b"\r\n");
        self.flush_output()?;
        let mut items = Vec::new();
        loop {
            let line = self.receive_line()?;
            if line == b"END" {
                return Ok(items);
            }
            let (mut item, len) = read_value_line(&line).ok_or_else(|| refused(&line))?;
            item.value = self.receive_exact(len)?;
            let end = self.receive_exact(2)?;
            if end != b"\r\n" {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a data block does not end where its line said",
                ));
            }
            items.push(item);
        }
    }

    fn put_store(&mut self, verb: &str, key: &[u8], rest: &str, value: &[u8]) {
        for piece in [verb.as_bytes(), b" ", key, b" ", rest.as_bytes(), b"\r\n", value, b"\r\n"] {
            self.output.extend_from_slice(piece);
        }
    }

    fn read_stored(&mut self) -> io::Result<Stored> {
        match self.receive_line()?.as_slice() {
            b"STORED" => Ok(Stored::Stored),
            b"NOT_STORED" => Ok(Stored::NotStored),
            b"EXISTS" => Ok(Stored::Exists),
            b"NOT_FOUND" => Ok(Stored::NotFound),
            line => Err(refused(line)),
        }
    }

    fn flush_output(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent
    }
}

/// Reads `VALUE <key> <flags> <bytes> [<cas>]` into an item without its value, and the value's length.
fn read_value_line(line: &[u8]) -> Option<(Item, usize)> {
    let mut words = line.strip_prefix(b"VALUE ")?.split(|&byte| byte == b' ');
    let key = words.next()?.to_vec();
    let mut number = || -> Option<Option<u64>> {
        let Some(word) = words.next() else { return Some(None) };
        Some(Some(std::str::from_utf8(word).ok()?.parse().ok()?))
    };
    let flags = u32::try_from(number()??).ok()?;
    let len = usize::try_from(number()??).ok()?;
    let cas = number()?;
    words.next().is_none().then(|| (Item { key, flags, value: Vec::new(), cas }, len))
}

fn found(line: &[u8], done: &[u8]) -> io::Result<bool> {
    match line {
        b"NOT_FOUND" => Ok(false),
        _ if line == done => Ok(true),
        _ => Err(refused(line)),
    }
}

fn refused(line: &[u8]) -> io::Error {
    io::Error::other(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_lines_are_read_whole_or_not_at_all() {
        let (item, len) = read_value_line(b"VALUE k 5 3").expect("a value line");
        assert_eq!((item.key.as_slice(), item.flags, item.cas, len), (&b"k"[..], 5, None, 3));
        assert_eq!(read_value_line(b"VALUE k 5 3 9").expect("a value line").0.cas, Some(9));
        for bad in [&b"VALUE k 5"[..], b"VALUE k x 3", b"VALUE k 5 3 x", b"VALUE k 5 3 9 9", b"STORED", b"VALUE k 5 -1"]
        {
            assert!(read_value_line(bad).is_none(), "{}", bad.escape_ascii());
        }
    }
}

//! Keys, values and the bytes of requests. Knows no socket.

/// The language of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2.
    Resp,
    /// memcached's classic text.
    Memcache,
    /// memcached's meta commands.
    Meta,
}

impl Protocol {
    /// Its part of a measurement's name.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Resp => "resp",
            Protocol::Memcache => "memcache",
            Protocol::Meta => "meta",
        }
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads one key, whose value has so many bytes.
    Get {
        /// Bytes of the value expected.
        value_len: usize,
    },
    /// Reads several keys with one request; each counts as an operation.
    MultiGet {
        /// Keys a request.
        keys: usize,
        /// Bytes of each value expected.
        value_len: usize,
    },
    /// Writes one key.
    Set {
        /// Bytes of the value.
        value_len: usize,
        /// Whether the key is given an expiry, a day ahead.
        expire: bool,
    },
    /// Any command of RESP, whose reply is read and not looked into unless it is an error.
    Command {
        /// Its words; each [`RANDOM`] in them becomes twelve digits, as redis-benchmark writes them.
        words: &'static [&'static str],
        /// The digits are below this number: they are those of the key's number, written to this base. So a load's keys are
        /// this number to the power of how many [`RANDOM`]s there are.
        below: u64,
    },
}

/// Stands for a number in the words of a command.
pub const RANDOM: &str = "__rand_int__";

impl Operation {
    /// Keys that one request names.
    pub fn keys(self) -> usize {
        match self {
            Operation::MultiGet { keys, .. } => keys,
            Operation::Get { .. } | Operation::Set { .. } | Operation::Command { .. } => 1,
        }
    }
}

/// Bytes of every key: `key:` and twelve digits, as redis-benchmark writes them.
pub const KEY_LEN: usize = 16;

/// Seconds until an expiring key's end: none ends during a measurement.
const EXPIRE_SECONDS: &str = "86400";

/// The name of key number `number`.
pub fn key(number: u64) -> [u8; KEY_LEN] {
    let mut key = *b"key:000000000000";
    key[4..].copy_from_slice(&twelve_digits(number));
    key
}

fn twelve_digits(number: u64) -> [u8; RANDOM.len()] {
    let mut digits = [0; RANDOM.len()];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Whether `value` is what [`write()`] stores for key number `number`.
pub fn is_value_of(value: &[u8], number: u64, value_len: usize) -> bool {
    let tell = value_len.min(KEY_LEN);
    value.len() == value_len && value[..tell] == key(number)[KEY_LEN - tell..]
}

/// Appends one request for these keys.
pub fn write(out: &mut Vec<u8>, protocol: Protocol, operation: Operation, keys: &[u64]) {
    match (protocol, operation) {
        (_, Operation::Command { words, below }) => command(out, words, keys[0], below),
        (Protocol::Resp, Operation::Get { .. }) => {
            out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
            bulk(out, &key(keys[0]));
        }
        (Protocol::Resp, Operation::MultiGet { .. }) => {
            out.extend_from_slice(format!("*{}\r\n$4\r\nMGET\r\n", keys.len() + 1).as_bytes());
            keys.iter().for_each(|number| bulk(out, &key(*number)));
        }
        (Protocol::Resp, Operation::Set { value_len, expire }) => {
            let head: &[u8] = if expire { b"*5\r\n$3\r\nSET\r\n" } else { b"*3\r\n$3\r\nSET\r\n" };
            out.extend_from_slice(head);
            bulk(out, &key(keys[0]));
            out.push(b'$');
            decimal(out, value_len);
            out.extend_from_slice(b"\r\n");
            value(out, keys[0], value_len);
            if expire {
                bulk(out, b"EX");
                bulk(out, EXPIRE_SECONDS.as_bytes());
            }
        }
        (Protocol::Memcache, Operation::Get { .. } | Operation::MultiGet { .. }) => {
            out.extend_from_slice(b"get");
            for number in keys {
                out.push(b' ');
                out.extend_from_slice(&key(*number));
            }
            out.extend_from_slice(b"\r\n");
        }
        (Protocol::Meta, Operation::Get { .. } | Operation::MultiGet { .. }) => {
            for number in keys {
                out.extend_from_slice(b"mg ");
                out.extend_from_slice(&key(*number));
                out.extend_from_slice(b" v\r\n");
            }
        }
        (Protocol::Meta, Operation::Set { value_len, expire }) => {
            out.extend_from_slice(b"ms ");
            out.extend_from_slice(&key(keys[0]));
            out.push(b' ');
            decimal(out, value_len);
            if expire {
                out.extend_from_slice(b" T");
                out.extend_from_slice(EXPIRE_SECONDS.as_bytes());
            }
            out.extend_from_slice(b"\r\n");
            value(out, keys[0], value_len);
        }
        (Protocol::Memcache, Operation::Set { value_len, expire }) => {
            out.extend_from_slice(b"set ");
            out.extend_from_slice(&key(keys[0]));
            out.extend_from_slice(b" 0 ");
            out.extend_from_slice(if expire { EXPIRE_SECONDS.as_bytes() } else { b"0" });
            out.push(b' ');
            decimal(out, value_len);
            out.extend_from_slice(b"\r\n");
            value(out, keys[0], value_len);
        }
    }
}

/// A command, with a number in the place of each [`RANDOM`].
fn command(out: &mut Vec<u8>, words: &[&str], mut number: u64, below: u64) {
    out.push(b'*');
    decimal(out, words.len());
    out.extend_from_slice(b"\r\n");
    for word in words {
        bulk(out, word.as_bytes());
        let body = out.len() - 2 - word.len();
        for (index, _) in word.match_indices(RANDOM) {
            out[body + index..][..RANDOM.len()].copy_from_slice(&twelve_digits(number % below));
            number /= below;
        }
    }
}

/// A number in decimal, written without the formatting machinery: the client is not to be the limit.
fn decimal(out: &mut Vec<u8>, number: usize) {
    let digits = number.checked_ilog10().unwrap_or(0);
    out.extend((0..=digits).rev().map(|place| b'0' + (number / 10_usize.pow(place) % 10) as u8));
}

fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'$');
    decimal(out, bytes.len());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// A value that tells its key, so that a wrong answer is seen: the key's end, then filling. The line end follows.
fn value(out: &mut Vec<u8>, number: u64, value_len: usize) {
    let tell = value_len.min(KEY_LEN);
    out.extend_from_slice(&key(number)[KEY_LEN - tell..]);
    out.resize(out.len() + value_len - tell, b'x');
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(protocol: Protocol, operation: Operation, keys: &[u64]) -> String {
        let mut out = Vec::new();
        write(&mut out, protocol, operation, keys);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn requests_are_as_the_protocols_want_them() {
        let get = Operation::Get { value_len: 32 };
        assert_eq!(text(Protocol::Resp, get, &[7]), "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000007\r\n");
        assert_eq!(text(Protocol::Memcache, get, &[7]), "get key:000000000007\r\n");
        let multi = Operation::MultiGet { keys: 2, value_len: 32 };
        assert_eq!(text(Protocol::Memcache, multi, &[1, 20]), "get key:000000000001 key:000000000020\r\n");
        let set = Operation::Set { value_len: 18, expire: true };
        let resp =
            "*5\r\n$3\r\nSET\r\n$16\r\nkey:000000000003\r\n$18\r\nkey:000000000003xx\r\n$2\r\nEX\r\n$5\r\n86400\r\n";
        assert_eq!(text(Protocol::Resp, set, &[3]), resp);
        let set = Operation::Set { value_len: 8, expire: false };
        assert_eq!(text(Protocol::Memcache, set, &[3]), "set key:000000000003 0 0 8\r\n00000003\r\n");
        assert_eq!(text(Protocol::Meta, set, &[3]), "ms key:000000000003 8\r\n00000003\r\n");
        let set = Operation::Set { value_len: 8, expire: true };
        assert_eq!(text(Protocol::Meta, set, &[3]), "ms key:000000000003 8 T86400\r\n00000003\r\n");
        assert_eq!(text(Protocol::Meta, multi, &[1, 20]), "mg key:000000000001 v\r\nmg key:000000000020 v\r\n");
    }

    #[test]
    fn each_placeholder_of_a_command_becomes_a_number_of_the_range() {
        let words: &[&str] = &["ZADD", "zset:__rand_int__", "__rand_int__", "member"];
        let operation = Operation::Command { words, below: 1_000 };
        let lines = text(Protocol::Resp, operation, &[35_007]);
        let member = "$6\r\nmember\r\n";
        assert_eq!(lines, format!("*4\r\n$4\r\nZADD\r\n$17\r\nzset:000000000007\r\n$12\r\n000000000035\r\n{member}"));
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 7, 10, 99, 100, 1_000, 123_456_789] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_value_tells_its_key() {
        assert!(is_value_of(b"00000003", 3, 8));
        assert!(!is_value_of(b"00000004", 3, 8));
        assert!(!is_value_of(b"0000003", 3, 8));
        assert!(is_value_of(b"key:000000000003xx", 3, 18));
    }
}

//! What one client does to a server while others are measured: each disturbance with what it needs beforehand. Speaks RESP
//! over sockets of its own, and knows not what is measured.

use crate::target::Target;
use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tenon_client::resp::encode_command;
use tenon_client::{Resp, Stream, Value};

/// Something that a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Sets keys that expire half a second later, at a rate.
    Expiring,
    /// Has set keys that are all due in the same millisecond.
    DueAtOnce,
    /// Sets long values in a server that is full, at a rate.
    Evicting,
    /// Sets keys that are new, at a rate.
    Growing,
    /// Deletes one large set.
    Delete,
    /// Asks for all keys, again and again.
    AllKeys,
    /// Runs a script that counts, again and again.
    Script,
    /// Asks for all members of a large set, again and again.
    LargeReply,
    /// Stores the union of two large sets, again and again.
    LargeUnion,
    /// Sorts a large set, again and again.
    LargeSort,
    /// Holds connections on which nothing is said.
    Idle,
    /// Asks for long values, and reads slowly.
    SlowReader,
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Keys that the measured load has.
    pub keys: u64,
    /// Members of the large set that is deleted.
    pub members: u64,
    /// Members of the large sets that are worked on.
    pub elements: u64,
    /// What the script counts to.
    pub turns: u64,
    /// Connections on which nothing is said.
    pub idle: usize,
    /// How long it goes on.
    pub lasts: Duration,
}

/// Commands of one write, and of the replies waited for behind it.
const BATCH: u64 = 50;

/// Members of one SADD.
const MEMBERS_A_COMMAND: u64 = 100;

/// Operations a second of those that go on at a rate.
const RATE: f64 = 30_000.0;

/// Bytes of the values that fill a server up.
const LONG: usize = 1_024;

/// Bytes of the value that is read slowly, and how fast it is.
const HUGE: usize = 1 << 20;
const SLOW_BYTES: usize = 64 * 1024;
const SLOW_PAUSE: Duration = Duration::from_millis(10);

/// A reply that does not come for so long never does.
const PATIENCE: Duration = Duration::from_secs(60);

impl Disturbance {
    /// All of them.
    pub const ALL: [Disturbance; 12] = [
        Disturbance::Expiring,
        Disturbance::DueAtOnce,
        Disturbance::Evicting,
        Disturbance::Growing,
        Disturbance::Delete,
        Disturbance::AllKeys,
        Disturbance::Script,
        Disturbance::LargeReply,
        Disturbance::LargeUnion,
        Disturbance::LargeSort,
        Disturbance::Idle,
        Disturbance::SlowReader,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Disturbance::Expiring => "keys expire",
            Disturbance::DueAtOnce => "many keys due at once",
            Disturbance::Evicting => "eviction",
            Disturbance::Growing => "growth",
            Disturbance::Delete => "DEL of a large set",
            Disturbance::AllKeys => "KEYS *",
            Disturbance::Script => "slow script",
            Disturbance::LargeReply => "SMEMBERS of a large set",
            Disturbance::LargeUnion => "SUNIONSTORE of large sets",
            Disturbance::LargeSort => "SORT of a large set",
            Disturbance::Idle => "idle connections",
            Disturbance::SlowReader => "slow reader",
        }
    }

    /// Has made what it needs, before anything is measured.
    pub fn prepare(self, target: &Target, scale: &Scale, stop: &AtomicBool) -> Result<()> {
        let mut client = Client::connect(target)?;
        match self {
            Disturbance::Evicting => {
                // Twice what there is room for.
                client.set(0..scale.evicted(), "full", LONG, "", stop)
            }
            Disturbance::Delete => client.fill_set(b"large", scale.members, stop),
            Disturbance::LargeReply | Disturbance::LargeSort => client.fill_set(b"large", scale.elements, stop),
            Disturbance::LargeUnion => {
                client.fill_set(b"large", scale.elements, stop)?;
                client.fill_set(b"other", scale.elements / 2, stop)
            }
            Disturbance::SlowReader => {
                client.call(&[b"SET", b"huge", &vec![b'x'; HUGE]])?;
                Ok(())
            }
            // As many as there are and some more, whatever the limit was.
            Disturbance::Idle => {
                let clients = (scale.idle + 1_000).to_string();
                client.call(&[b"CONFIG", b"SET", b"maxclients", clients.as_bytes()]).context("maxclients")?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Goes on until it is stopped, or until it has done all it had to do; tells how often it has done it. `begun` is
    /// called when the measurement may begin.
    pub fn go_on(self, target: &Target, scale: &Scale, begun: impl FnOnce(), stop: &AtomicBool) -> Result<u64> {
        let mut client = Client::connect(target)?;
        match self {
            Disturbance::Expiring => {
                begun();
                client.paced("due", 32, "500", stop)
            }
            Disturbance::DueAtOnce => client.due_at_once(scale, begun, stop),
            Disturbance::Evicting => {
                begun();
                client.paced("more", LONG, "", stop)
            }
            Disturbance::Growing => {
                begun();
                client.grow(scale, stop)
            }
            Disturbance::Delete => {
                begun();
                std::thread::sleep(scale.lasts / 4);
                let deleted = client.call(&[b"DEL", b"large"])?;
                if deleted != Value::Int(1) {
                    bail!("DEL answered {deleted:?}");
                }
                Ok(1)
            }
            Disturbance::AllKeys => {
                begun();
                client.repeat(&[b"KEYS", b"*"], stop)
            }
            Disturbance::Script => {
                begun();
                let turns = scale.turns.to_string();
                let script = b"local n = 0 for i = 1, tonumber(ARGV[1]) do n = n + i end return n";
                client.repeat(&[b"EVAL", script, b"0", turns.as_bytes()], stop)
            }
            Disturbance::LargeReply => {
                begun();
                client.repeat(&[b"SMEMBERS", b"large"], stop)
            }
            Disturbance::LargeUnion => {
                begun();
                client.repeat(&[b"SUNIONSTORE", b"union", b"large", b"other"], stop)
            }
            Disturbance::LargeSort => {
                begun();
                client.repeat(&[b"SORT", b"large", b"ALPHA"], stop)
            }
            Disturbance::Idle => {
                let connect = |_| target.connect(Some(PATIENCE)).context("an idle connection");
                let connections: Vec<Stream> = (0..scale.idle).map(connect).collect::<Result<_>>()?;
                // The last one is answered, so all have been accepted.
                client.call(&[b"PING"])?;
                begun();
                wait(stop);
                Ok(connections.len() as u64)
            }
            Disturbance::SlowReader => {
                begun();
                client.read_slowly(stop)
            }
        }
    }
}

impl Scale {
    /// A limit for the memory that the keys fit and that long values reach soon.
    pub fn limit_bytes(&self) -> u64 {
        (self.keys * 256).max(32 << 20)
    }

    fn evicted(&self) -> u64 {
        2 * self.limit_bytes() / LONG as u64
    }
}

fn wait(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The disturbing client. It looks at replies as little as it can: the time is that of the load beside it.
struct Client {
    stream: Stream,
    output: Vec<u8>,
    input: Vec<u8>,
}

impl Client {
    fn connect(target: &Target) -> Result<Client> {
        let stream = target.connect(Some(PATIENCE)).context("the disturbing client")?;
        Ok(Client { stream, output: Vec::new(), input: vec![0; 256 * 1024] })
    }

    /// Sends one command and takes its reply to pieces. An error is one.
    fn call(&mut self, command: &[&[u8]]) -> Result<Value> {
        let mut resp = Resp::over(self.stream.try_clone()?);
        match resp.call(command)? {
            Value::Error(error) => bail!("the server answered {}", String::from_utf8_lossy(&error)),
            reply => Ok(reply),
        }
    }

    /// Sends what is there and reads `lines` lines, none of which is an error.
    fn exchange(&mut self, mut lines: u64) -> Result<()> {
        self.stream.write_all(&self.output)?;
        self.output.clear();
        let mut begins = true;
        while lines > 0 {
            let len = self.stream.read(&mut self.input)?;
            if len == 0 {
                bail!("the server has closed the disturbing client's connection");
            }
            for byte in &self.input[..len] {
                if begins && *byte == b'-' {
                    bail!("the server answered {}", String::from_utf8_lossy(&self.input[..len.min(200)]));
                }
                begins = *byte == b'\n';
                lines -= u64::from(begins);
            }
        }
        Ok(())
    }

    /// Sets keys of these numbers, with PX behind them if there is one.
    fn set(&mut self, numbers: Range<u64>, name: &str, len: usize, px: &str, stop: &AtomicBool) -> Result<()> {
        let mut next = numbers.start;
        while next < numbers.end && !stop.load(Ordering::Relaxed) {
            let end = numbers.end.min(next + BATCH);
            self.set_batch(next..end, name, len, ("PX", px))?;
            next = end;
        }
        Ok(())
    }

    fn set_batch(&mut self, numbers: Range<u64>, name: &str, len: usize, (word, at): (&str, &str)) -> Result<()> {
        let value = vec![b'v'; len];
        let count = numbers.end - numbers.start;
        for number in numbers {
            let key = format!("{name}:{number}");
            let plain: [&[u8]; 3] = [b"SET", key.as_bytes(), &value];
            let with_end = [plain[0], plain[1], plain[2], word.as_bytes(), at.as_bytes()];
            encode_command(if at.is_empty() { &plain } else { &with_end }, &mut self.output);
        }
        self.exchange(count)
    }

    fn paced(&mut self, name: &str, len: usize, px: &str, stop: &AtomicBool) -> Result<u64> {
        self.at_rate(RATE, u64::MAX, name, len, px, stop)
    }

    /// Sets a third more keys than there are while it is measured.
    fn grow(&mut self, scale: &Scale, stop: &AtomicBool) -> Result<u64> {
        let new = scale.keys / 3;
        self.at_rate(new as f64 / scale.lasts.as_secs_f64(), new, "new", 32, "", stop)
    }

    fn at_rate(&mut self, rate: f64, end: u64, name: &str, len: usize, px: &str, stop: &AtomicBool) -> Result<u64> {
        let started = Instant::now();
        let mut done = 0;
        while !stop.load(Ordering::Relaxed) && done < end {
            self.set_batch(done..done + BATCH, name, len, ("PX", px))?;
            done += BATCH;
            let due = Duration::from_secs_f64(done as f64 / rate);
            std::thread::sleep(due.saturating_sub(started.elapsed()));
        }
        Ok(done)
    }

    /// Half as many keys as there are beside them, due a quarter into the measurement.
    fn due_at_once(&mut self, scale: &Scale, begun: impl FnOnce(), stop: &AtomicBool) -> Result<u64> {
        let count = scale.keys / 2;
        // 50,000 a second are stored by the slowest.
        let due_ms = unix_ms() + 200 + count / 50;
        let at = due_ms.to_string();
        let mut next = 0;
        while next < count && !stop.load(Ordering::Relaxed) {
            self.set_batch(next..next + BATCH, "due", 32, ("PXAT", &at))?;
            next += BATCH;
        }
        let begin_ms = due_ms.saturating_sub(scale.lasts.as_millis() as u64 / 4);
        let Some(left) = begin_ms.checked_sub(unix_ms()) else {
            bail!("the machine was too slow: keys were due before all were stored");
        };
        std::thread::sleep(Duration::from_millis(left));
        begun();
        wait(stop);
        Ok(next)
    }

    fn fill_set(&mut self, key: &[u8], members: u64, stop: &AtomicBool) -> Result<()> {
        let commands = members.div_ceil(MEMBERS_A_COMMAND);
        for command in 0..commands {
            let names: Vec<String> = (0..MEMBERS_A_COMMAND)
                .map(|member| format!("member:{}", command * MEMBERS_A_COMMAND + member))
                .collect();
            let mut words: Vec<&[u8]> = vec![b"SADD", key];
            words.extend(names.iter().map(|name| name.as_bytes()));
            encode_command(&words, &mut self.output);
            if command % 16 == 15 {
                self.exchange(16)?;
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
        self.exchange(commands % 16)
    }

    /// Sends the same command again and again and passes over what it answers, which ends in a line's end.
    fn repeat(&mut self, command: &[&[u8]], stop: &AtomicBool) -> Result<u64> {
        let mut done = 0;
        while !stop.load(Ordering::Relaxed) {
            encode_command(command, &mut self.output);
            self.stream.write_all(&self.output)?;
            self.output.clear();
            self.pass_over_reply(stop)?;
            done += 1;
        }
        Ok(done)
    }

    /// Reads one reply of integers or of an array of strings without strings of it being made. Where it is stopped the
    /// rest stays unread.
    fn pass_over_reply(&mut self, stop: &AtomicBool) -> Result<()> {
        let mut lines = None;
        let mut head = Vec::new();
        while lines != Some(0) && !stop.load(Ordering::Relaxed) {
            let len = self.stream.read(&mut self.input)?;
            if len == 0 {
                bail!("the server has closed the disturbing client's connection");
            }
            let mut from = 0;
            if lines.is_none() {
                let Some(end) = self.input[..len].iter().position(|byte| *byte == b'\n') else {
                    head.extend_from_slice(&self.input[..len]);
                    continue;
                };
                head.extend_from_slice(&self.input[..end]);
                lines = Some(lines_behind(&head)?);
                from = end + 1;
            }
            let ends = self.input[from..len].iter().filter(|byte| **byte == b'\n').count() as u64;
            lines = lines.map(|lines| lines.saturating_sub(ends));
        }
        Ok(())
    }

    fn read_slowly(&mut self, stop: &AtomicBool) -> Result<u64> {
        let mut read = 0;
        let mut asked = 0;
        while !stop.load(Ordering::Relaxed) {
            // Sixteen replies are always on their way, more than the sockets' buffers hold.
            while asked * HUGE < read + 16 * HUGE {
                encode_command(&[b"GET", b"huge"], &mut self.output);
                asked += 1;
            }
            self.stream.write_all(&self.output)?;
            self.output.clear();
            match self.stream.read(&mut self.input[..SLOW_BYTES])? {
                0 => bail!("the server has closed the slow client's connection"),
                len => read += len,
            }
            std::thread::sleep(SLOW_PAUSE);
        }
        Ok((read / HUGE) as u64)
    }
}

/// How many lines follow the first one of a reply.
fn lines_behind(head: &[u8]) -> Result<u64> {
    match head.split_first() {
        Some((b'*', count)) => {
            let count: u64 = std::str::from_utf8(count)?.trim_end().parse().context("an array's length")?;
            Ok(2 * count)
        }
        Some((b':', _)) => Ok(0),
        _ => bail!("the server answered {}", String::from_utf8_lossy(head)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replys_first_line_says_how_many_follow() {
        assert_eq!(lines_behind(b"*3\r").unwrap(), 6);
        assert_eq!(lines_behind(b":499\r").unwrap(), 0);
        assert!(lines_behind(b"-BUSY\r").is_err());
        assert!(lines_behind(b"").is_err());
    }

    #[test]
    fn names_differ() {
        for (index, one) in Disturbance::ALL.iter().enumerate() {
            assert!(Disturbance::ALL[index + 1..].iter().all(|other| other.name() != one.name()));
        }
    }
}

//! A RESP server in this process that behaves as it is told. Knows PING, GET, SET, DEL and MGET.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_bench::target::{Protocol, Target};
use tenon_client::Address;

/// What the server does to its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// Answers as a server should.
    Good,
    /// Says nothing to anybody for a while when so many requests have come.
    Stalls { at: u64, pause: Duration },
    /// Says that it is the process of this number.
    Claims { pid: u32 },
    /// Answers the request of this number with another value.
    WrongValue { at: u64 },
    /// Says that this request's key is not there.
    Forgets { at: u64 },
    /// From this request on, stores nothing that it says it has stored, and drops what was there.
    Swallows { from: u64 },
    /// Answers this request with an error.
    Refuses { at: u64 },
    /// Sends more than it was asked for.
    SaysMore { at: u64 },
    /// Answers nobody who has not said this password.
    Wants { password: &'static str },
    /// Closes the connection instead of answering this request.
    HangsUp { at: u64 },
}

struct Shared {
    manners: Manners,
    requests: AtomicU64,
    /// Held while a stalling server stalls: nobody gets an answer.
    data: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

/// A running server; its threads end with the test's process.
pub struct Toy {
    pub address: Address,
    shared: Arc<Shared>,
}

impl Toy {
    /// On a free loopback port.
    pub fn start(manners: Manners) -> Toy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").into();
        let shared = shared(manners);
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                let _ = stream.set_nodelay(true);
                std::thread::spawn(move || {
                    let writer: TcpStream = stream.try_clone().expect("a second handle");
                    serve(&served, stream, writer);
                });
            }
        });
        Toy { address, shared }
    }

    /// On a UNIX socket.
    pub fn start_unix(path: &Path) -> Toy {
        let listener = UnixListener::bind(path).expect("a socket");
        let shared = shared(Manners::Good);
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                std::thread::spawn(move || {
                    let writer = stream.try_clone().expect("a second handle");
                    serve(&served, stream, writer);
                });
            }
        });
        Toy { address: Address::Unix(path.into()), shared }
    }

    /// Where it is.
    pub fn target(&self) -> Target {
        Target::of(Protocol::Resp, self.address.clone())
    }

    /// How many requests it has read.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

fn shared(manners: Manners) -> Arc<Shared> {
    Arc::new(Shared { manners, requests: AtomicU64::new(0), data: Mutex::new(HashMap::new()) })
}

fn serve(shared: &Shared, reader: impl Read, mut writer: impl Write) {
    let mut reader = BufReader::new(reader);
    let mut out = Vec::new();
    let mut is_known = !matches!(shared.manners, Manners::Wants { .. });
    while let Some(words) = command(&mut reader) {
        let number = shared.requests.fetch_add(1, Ordering::SeqCst) + 1;
        match shared.manners {
            Manners::Wants { password } if words[0] == b"AUTH" => {
                is_known = words[1..] == [password.as_bytes()];
                // As others do with a command that they do not know.
                let refusal = format!("-ERR no: {}\r\n", String::from_utf8_lossy(&words[words.len() - 1]));
                out.extend_from_slice(if is_known { b"+OK\r\n" } else { refusal.as_bytes() });
            }
            _ if !is_known => out.extend_from_slice(b"-NOAUTH Authentication required.\r\n"),
            _ if !answer(shared, number, &words, &mut out) => return,
            _ => {}
        }
        // What has been read together is answered together, as servers do.
        if reader.buffer().is_empty() {
            if writer.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    }
}

fn command(reader: &mut impl BufRead) -> Option<Vec<Vec<u8>>> {
    let number = |reader: &mut dyn BufRead| -> Option<usize> {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|len| *len > 0)?;
        line[1..].trim_end().parse().ok()
    };
    let words = number(reader)?;
    (0..words)
        .map(|_| {
            let mut word = vec![0; number(reader)? + 2];
            reader.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            Some(word)
        })
        .collect()
}

/// False to hang up.
fn answer(shared: &Shared, number: u64, words: &[Vec<u8>], out: &mut Vec<u8>) -> bool {
    let mut data = shared.data.lock().expect("no thread panics with it");
    let bulk = |value: Option<&Vec<u8>>, out: &mut Vec<u8>| match value {
        Some(value) => {
            out.extend_from_slice(format!("${}\r\n", value.len()).as_bytes());
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
        None => out.extend_from_slice(b"$-1\r\n"),
    };
    match shared.manners {
        Manners::Stalls { at, pause } if at == number => std::thread::sleep(pause),
        Manners::WrongValue { at } if at == number => {
            bulk(Some(&b"something else entirely, of 32 b".to_vec()), out);
            return true;
        }
        Manners::Forgets { at } if at == number => {
            bulk(None, out);
            return true;
        }
        Manners::Refuses { at } if at == number => {
            out.extend_from_slice(b"-OOM command not allowed\r\n");
            return true;
        }
        Manners::SaysMore { at } if at == number => out.extend_from_slice(b"+OK\r\n"),
        Manners::HangsUp { at } if at == number => return false,
        _ => {}
    }
    match (words[0].as_slice(), &words[1..]) {
        (b"INFO", _) if let Manners::Claims { pid } = shared.manners => {
            bulk(Some(&format!("redis_version:7.0.0\r\nprocess_id:{pid}\r\n").into_bytes()), out);
        }
        (b"PING", []) => out.extend_from_slice(b"+PONG\r\n"),
        (b"GET", [key]) => bulk(data.get(key), out),
        (b"SET", [key, value, ..]) => {
            match shared.manners {
                Manners::Swallows { from } if number >= from => data.remove(key),
                _ => data.insert(key.clone(), value.clone()),
            };
            out.extend_from_slice(b"+OK\r\n");
        }
        (b"DEL", [key]) => {
            let removed = u8::from(data.remove(key).is_some());
            out.extend_from_slice(format!(":{removed}\r\n").as_bytes());
        }
        (b"MGET", keys) => {
            out.extend_from_slice(format!("*{}\r\n", keys.len()).as_bytes());
            keys.iter().for_each(|key| bulk(data.get(key), out));
        }
        _ => out.extend_from_slice(b"-ERR unknown command\r\n"),
    }
    true
}

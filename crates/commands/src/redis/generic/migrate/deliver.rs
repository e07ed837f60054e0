//! The connection to the other server: parcels there, its answers back. Knows no data of this server.

use super::parcel::{Content, Parcel};
use std::io;
use std::time::Duration;
use tenon_client::{Address, Resp, Value, ValueLimits};
use tenon_engine::unsent::OnItsWay;

/// What the other server may answer: lines as long as Redis reads of it, and nothing else.
const ANSWER: ValueLimits = ValueLimits { depth_max: 0, bulk_len_max: 0, count_max: 0, line_max: 1024 };

/// Where parcels go, and as whom.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub(super) address: Address,
    pub(super) timeout: Duration,
    /// AUTH with its arguments.
    pub(super) login: Option<Vec<Vec<u8>>>,
    pub(super) database: i64,
}

/// What became of a delivery.
#[derive(Debug, Default)]
pub(super) struct Receipt {
    /// For each parcel whether it was taken, in order; where the connection was lost there are fewer.
    pub(super) taken: Vec<bool>,
    /// The first error that the other server answered, without its sign.
    pub(super) error: Option<Vec<u8>>,
    /// Where the connection failed.
    pub(super) lost: Option<Lost>,
    /// The connection, open until the receipt is read: so the other server still knows it if that is this one.
    pub(super) connection: Option<Resp>,
}

/// Where a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    Connecting,
    Writing,
    Reading,
}

impl Lost {
    /// Redis learns of a connection that is refused when it first writes, and of one that is not answered before.
    fn of_connect(error: &io::Error) -> Lost {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Lost::Writing,
            _ => Lost::Connecting,
        }
    }
}

/// Sends parcels and waits for what is answered to each. `sent_from` is told of the connection's buffer.
pub(super) fn deliver(destination: &Destination, parcels: &[Parcel], sent_from: &mut OnItsWay) -> Receipt {
    let mut receipt = Receipt::default();
    if let Err(lost) = exchange(destination, parcels, &mut receipt, sent_from) {
        receipt.lost = Some(lost);
    }
    receipt
}

fn exchange(
    destination: &Destination,
    parcels: &[Parcel],
    receipt: &mut Receipt,
    sent_from: &mut OnItsWay,
) -> Result<(), Lost> {
    let connected = Resp::connect_to(&destination.address, Some(destination.timeout));
    let other = receipt.connection.insert(connected.map_err(|error| Lost::of_connect(&error))?);
    other.set_limits(ANSWER);
    write(other, destination, parcels, sent_from).map_err(|_| Lost::Writing)?;
    let mut receive = |error: &mut Option<Vec<u8>>| {
        let answer = other.receive_within(destination.timeout).map_err(|_| Lost::Reading)?;
        Ok(note_error(answer, error))
    };
    let mut is_refused = false;
    for _ in 0..usize::from(destination.login.is_some()) + 1 {
        is_refused |= receive(&mut receipt.error)?;
    }
    for _ in parcels {
        let is_refused = receive(&mut receipt.error)? || is_refused;
        receipt.taken.push(!is_refused);
    }
    Ok(())
}

fn write(other: &mut Resp, destination: &Destination, parcels: &[Parcel], sent_from: &mut OnItsWay) -> io::Result<()> {
    let mut longest = 0;
    if let Some(login) = &destination.login {
        other.send(&login.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    }
    other.send(&[b"SELECT", destination.database.to_string().as_bytes()])?;
    for Parcel { key, content, replace } in parcels {
        match content {
            Content::Value { payload, ttl_ms, .. } => {
                let ttl = ttl_ms.to_string();
                // Each in turn is in the buffer, which grows to twice its length at most.
                longest = longest.max(payload.len());
                sent_from.set(2 * longest);
                let words: [&[u8]; 5] = [b"RESTORE", key, ttl.as_bytes(), payload, b"REPLACE"];
                other.send(if *replace { &words } else { &words[..4] })?;
            }
            Content::Gone => other.send(&[b"DEL", key])?,
        }
    }
    Ok(())
}

/// Keeps the first error; tells whether the answer is one.
fn note_error(answer: Value, first: &mut Option<Vec<u8>>) -> bool {
    let Value::Error(text) = answer else { return false };
    first.get_or_insert(text);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    /// Sends one parcel to a server that takes everything and does this meanwhile; gives what has become of the parcel, and what
    /// the server gave.
    fn deliver_to<R: Send>(
        timeout: Duration,
        answer: impl FnOnce(&mut TcpStream) -> R + Send,
    ) -> (Vec<bool>, Option<Lost>, R) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port };
        let destination = Destination { address, timeout, login: None, database: 0 };
        let parcels = [Parcel { key: b"key".to_vec(), content: Content::Gone, replace: true }];
        thread::scope(|scope| {
            let other = scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("somebody comes");
                let answered = answer(&mut stream);
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
                answered
            });
            let receipt = deliver(&destination, &parcels, &mut OnItsWay::default());
            let (taken, lost) = (receipt.taken.clone(), receipt.lost);
            drop(receipt);
            (taken, lost, other.join().expect("it ends"))
        })
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn lines_are_all_that_is_read() {
        let answered = |answers: &str| {
            let (taken, lost, ()) = deliver_to(PATIENCE, |stream| stream.write_all(answers.as_bytes()).expect("sent"));
            (taken, lost)
        };
        assert_eq!(answered("+OK\r\n:1\r\n"), (vec![true], None));
        assert_eq!(answered("+OK\r\n-ERR no\r\n"), (vec![false], None));
        let longest = "x".repeat(1023);
        assert_eq!(answered(&format!("+OK\r\n+{longest}\r\n")), (vec![true], None));
        for wrong in ["$2\r\nOK\r\n", "*1\r\n:1\r\n", "!2\r\nno\r\n", &format!("+{longest}x\r\n")] {
            assert_eq!(answered(&format!("{wrong}+OK\r\n")), (Vec::new(), Some(Lost::Reading)), "{wrong:?}");
        }
    }

    #[test]
    fn an_answer_without_end_is_not_collected() {
        const BYTES: usize = 64 << 20;
        let (_, lost, written) = deliver_to(PATIENCE, |stream| {
            let zeros = b":0\r\n".repeat(1 << 14);
            let mut written = stream.write(b"*2147483647\r\n").expect("sent");
            while written < BYTES && stream.write_all(&zeros).is_ok() {
                written += zeros.len();
            }
            written
        });
        assert_eq!(lost, Some(Lost::Reading));
        assert!(written < BYTES, "the connection ended, and nobody took so much");
    }

    #[test]
    fn an_answer_in_drops_comes_in_time_or_not_at_all() {
        // Each drop comes in time, all of them take ten times as long.
        let (taken, lost, ()) = deliver_to(Duration::from_millis(200), |stream| {
            for drop in [b"+".as_slice(), &b"x".repeat(200), b"\r\n+OK\r\n"].concat().chunks(1) {
                if stream.write_all(drop).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        assert_eq!((taken, lost), (Vec::new(), Some(Lost::Reading)));
    }
}

//! The connection to the other server: parcels there, its answers back. Knows no data of this server.

use super::parcel::{Content, Parcel};
use std::io;
use std::time::Duration;
use tenon_client::{Address, Resp, Value};

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

/// Sends parcels and waits for what is answered to each.
pub(super) fn deliver(destination: &Destination, parcels: &[Parcel]) -> Receipt {
    let mut receipt = Receipt::default();
    if let Err(lost) = exchange(destination, parcels, &mut receipt) {
        receipt.lost = Some(lost);
    }
    receipt
}

fn exchange(destination: &Destination, parcels: &[Parcel], receipt: &mut Receipt) -> Result<(), Lost> {
    let connected = Resp::connect_to(&destination.address, Some(destination.timeout));
    let other = receipt.connection.insert(connected.map_err(|error| Lost::of_connect(&error))?);
    write(other, destination, parcels).map_err(|_| Lost::Writing)?;
    let mut receive = |error: &mut Option<Vec<u8>>| {
        let answer = other.receive().map_err(|_| Lost::Reading)?;
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

fn write(other: &mut Resp, destination: &Destination, parcels: &[Parcel]) -> io::Result<()> {
    if let Some(login) = &destination.login {
        other.send(&login.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    }
    other.send(&[b"SELECT", destination.database.to_string().as_bytes()])?;
    for Parcel { key, content, replace } in parcels {
        match content {
            Content::Value { payload, ttl_ms, .. } => {
                let ttl = ttl_ms.to_string();
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

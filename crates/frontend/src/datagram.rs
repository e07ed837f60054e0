//! Requests of memcached clients over UDP: in one datagram, with a frame header, each answered by as many as it takes. Knows
//! no socket.
//!
//! ```text
//!  0            2                 4                     6          8
//! +------------+-----------------+---------------------+----------+------ ...
//! | request id | sequence number | datagrams in all    | 0        | what TCP has
//! +------------+-----------------+---------------------+----------+------ ...
//! ```
//!
//! Of a request's header memcached looks at the id, and whether it is the only datagram: if not it is dropped.
//!
//! Whoever sends in another's name gets that other one the answers. So a datagram's answers are bounded by its length, and
//! what is no request has none: two servers would never be done answering each other's errors.

use crate::Flow;
use crate::memcache::MemcacheConnection;
use std::io::IoSlice;
use tenon_engine::Engine;
use tenon_engine::clients::ClientInfo;
use tenon_engine::wire::OutBuf;
use tenon_engine::wire::memcache::binary::REQUEST_MAGIC;
use tenon_engine::worker::Worker;

/// Bytes of a frame header.
const HEADER: usize = 8;
/// Bytes of the longest datagram that is sent; memcached's number, which fits an Ethernet frame.
const DATAGRAM_MAX: usize = 1400;
/// Bytes of an answer that one frame has.
const PAYLOAD_MAX: usize = DATAGRAM_MAX - HEADER;

const COMPLAINT: &[u8] = b"ERROR\r\n";
const TOO_LARGE: &[u8] = b"SERVER_ERROR response too large for UDP\r\n";

/// Runs the requests of a datagram and hands each datagram of the answer to `send`.
pub fn on_datagram(
    engine: &Engine,
    worker: &mut Worker,
    info: ClientInfo,
    datagram: &[u8],
    send: &mut dyn FnMut(&[u8]),
) {
    let Some((header, request)) = datagram.split_first_chunk::<HEADER>() else { return };
    // Nobody can say over UDP who he is.
    if engine.config.memcached_auth() || engine.refuses(&info).is_some() || request.is_empty() {
        return;
    }
    if header[4..6] != [0, 1] {
        return;
    }
    let longest = match engine.config.memcached_udp_amplification_max() as usize {
        0 => PAYLOAD_MAX * usize::from(u16::MAX),
        factor => (datagram.len() * factor).min(PAYLOAD_MAX * usize::from(u16::MAX)),
    };
    let mut sent = 0;
    answer(engine, worker, info, [header[0], header[1]], request, longest, &mut |frame| {
        sent += frame.len() as u64;
        send(frame);
    });
    worker.stats.sent(sent);
}

/// Bytes of an answer together with the headers of its frames.
fn length_with_headers(len: usize) -> usize {
    len + len.div_ceil(PAYLOAD_MAX) * HEADER
}

/// Runs requests and sends the answer of each, as long as all together are no longer than they may be.
fn answer(
    engine: &Engine,
    worker: &mut Worker,
    info: ClientInfo,
    request_id: [u8; 2],
    requests: &[u8],
    longest: usize,
    send: &mut dyn FnMut(&[u8]),
) {
    let client = engine.clients.unlisted(info, worker.clock.now_ms);
    let mut connection = MemcacheConnection::for_datagram(engine, client);
    let mut out = OutBuf::new();
    let mut flow = connection.on_bytes(engine, worker, requests, &mut out);
    let mut ends = connection.take_ends();
    // What a pause holds up is lost, as any datagram may be.
    while flow == Flow::Drain && out.len() <= longest {
        // Nothing waits for room here: the answers are taken off as they grow, and put back whole.
        let mut taken = std::mem::take(&mut out);
        flow = connection.on_bytes(engine, worker, &[], &mut out);
        ends.extend(connection.take_ends().into_iter().map(|end| taken.len() + end));
        taken.append(&mut out);
        out = taken;
    }
    if ends.last().is_none_or(|&end| end < out.len()) {
        ends.push(out.len());
    }
    let (mut from, mut left) = (0, longest);
    for end in ends {
        let len = end - std::mem::replace(&mut from, end);
        if length_with_headers(len) <= left {
            left -= length_with_headers(len);
            send_frames(request_id, &mut out, len, send);
            continue;
        }
        out.advance(len);
        if requests[0] != REQUEST_MAGIC && length_with_headers(TOO_LARGE.len()) <= left {
            left -= length_with_headers(TOO_LARGE.len());
            let mut refused = OutBuf::new();
            refused.tail().extend_from_slice(TOO_LARGE);
            send_frames(request_id, &mut refused, TOO_LARGE.len(), send);
        }
    }
}

/// Sends the next `len` bytes as an answer, unless it only says that something is no request: two servers could tell each
/// other so for ever.
fn send_frames(request_id: [u8; 2], out: &mut OutBuf, len: usize, send: &mut dyn FnMut(&[u8])) {
    let total = len.div_ceil(PAYLOAD_MAX) as u16;
    let mut frame = Vec::with_capacity(DATAGRAM_MAX);
    let mut left = len;
    for sequence in 0..total {
        frame.clear();
        frame.extend_from_slice(&request_id);
        frame.extend_from_slice(&sequence.to_be_bytes());
        frame.extend_from_slice(&total.to_be_bytes());
        frame.extend_from_slice(&[0, 0]);
        while frame.len() < DATAGRAM_MAX && left > 0 {
            let mut slices = [IoSlice::new(&[])];
            out.io_slices(&mut slices);
            let part = slices[0].len().min(DATAGRAM_MAX - frame.len()).min(left);
            frame.extend_from_slice(&slices[0][..part]);
            out.advance(part);
            left -= part;
        }
        if &frame[HEADER..] != COMPLAINT {
            send(&frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tenon_engine::clients::{ConnectionKey, Dialect};
    use tenon_engine::config::{Caller, Config, Machine};
    use tenon_engine::pause::PauseMode;

    fn engine(settings: &[(&[u8], &[u8])]) -> (Arc<Engine>, Worker) {
        let config = Config::new(Machine { cores: 1, memory_bytes: None, directory: "/".into() });
        config.set(settings, Caller::Local).expect("settings that are right");
        let engine = Arc::new(Engine::new(config, tenon_commands::ALL, 7));
        let worker = engine.worker(0);
        (engine, worker)
    }

    /// What comes back, each datagram's header apart from the rest.
    fn converse(engine: &Engine, worker: &mut Worker, remote: &str, datagram: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let key = ConnectionKey::of_datagram(0);
        let (remote, local) = (remote.to_owned(), "127.0.0.1:11211".to_owned());
        let info = ClientInfo { key, dialect: Dialect::Memcached, remote, local, fd: 3, unix: false };
        let mut frames = Vec::new();
        let mut send = |frame: &[u8]| frames.push((frame[..HEADER].to_vec(), frame[HEADER..].to_vec()));
        on_datagram(engine, worker, info, datagram, &mut send);
        assert_eq!(engine.clients.count(), 0);
        frames
    }

    fn framed(request: &[u8]) -> Vec<u8> {
        [&[1, 2, 0, 0, 0, 1, 0, 0], request].concat()
    }

    const HERE: &str = "127.0.0.1:5";

    #[test]
    fn a_request_is_answered_in_frames() {
        let (engine, worker) = &mut engine(&[(b"memcached-udp-amplification-max", b"0")]);
        let answers = converse(engine, worker, HERE, &framed(b"set k 0 0 5\r\nhello\r\n"));
        assert_eq!(answers, [(vec![1, 2, 0, 0, 0, 1, 0, 0], b"STORED\r\n".to_vec())]);
        let value = "x".repeat(3_000_000);
        let request = format!("set long 0 0 {}\r\n{value}\r\n", value.len());
        converse(engine, worker, HERE, &framed(request.as_bytes()));
        let answers = converse(engine, worker, HERE, &framed(b"get long k\r\n"));
        let total = answers.len() as u16;
        for (sequence, (header, part)) in answers.iter().enumerate() {
            let (sequence, total) = ((sequence as u16).to_be_bytes(), total.to_be_bytes());
            assert_eq!(*header, [1, 2, sequence[0], sequence[1], total[0], total[1], 0, 0]);
            assert!(part.len() <= PAYLOAD_MAX);
        }
        let whole: Vec<u8> = answers.into_iter().flat_map(|(_, part)| part).collect();
        let expected = format!("VALUE long 0 3000000\r\n{value}\r\nVALUE k 0 5\r\nhello\r\nEND\r\n");
        assert!(whole == expected.as_bytes());
    }

    #[test]
    fn each_request_of_a_datagram_is_answered_by_itself() {
        let (engine, worker) = &mut engine(&[(b"memcached-udp-amplification-max", b"0")]);
        let value = "x".repeat(2_000);
        converse(engine, worker, HERE, &framed(format!("set long 5 0 2000\r\n{value}\r\n").as_bytes()));
        let requests = "set k 0 0 1\r\nv\r\nset q 0 0 1 noreply\r\nw\r\nget long\r\nbogus\r\nget k q\r\nget ";
        let answers = converse(engine, worker, HERE, &framed(requests.as_bytes()));
        let head = |sequence: u8, total: u8| vec![1, 2, 0, sequence, 0, total, 0, 0];
        let whole = format!("VALUE long 5 2000\r\n{value}\r\nEND\r\n");
        let (first, second) = whole.as_bytes().split_at(PAYLOAD_MAX);
        let expected = [
            (head(0, 1), b"STORED\r\n".to_vec()),
            (head(0, 2), first.to_vec()),
            (head(1, 2), second.to_vec()),
            (head(0, 1), b"VALUE k 0 1\r\nv\r\nVALUE q 0 1\r\nw\r\nEND\r\n".to_vec()),
        ];
        assert_eq!(answers, expected);
        // A line of keys that is read in parts is one request, and what is refused takes its data with it.
        let keys = " k".repeat(2_000);
        let too_long = format!("set {} 0 0 2\r\nab\r\n", "k".repeat(251));
        let answers = converse(engine, worker, HERE, &framed(format!("get{keys}\r\n{too_long}mn\r\n").as_bytes()));
        let total = answers[0].0[5];
        let text =
            |answers: &[(Vec<u8>, Vec<u8>)]| answers.iter().flat_map(|(_, part)| part.clone()).collect::<Vec<u8>>();
        assert_eq!(
            text(&answers[..total.into()]),
            ["VALUE k 0 1\r\nv\r\n".repeat(2_000), "END\r\n".into()].concat().as_bytes()
        );
        let rest = &answers[total.into()..];
        assert_eq!(rest.len(), 2, "{rest:?}");
        assert_eq!(rest[1].1, b"MN\r\n");
        // The sequence number of a lone datagram says nothing.
        let lone = [&[1, 2, 0, 5, 0, 1, 9, 9], &b"mn\r\n"[..]].concat();
        assert_eq!(converse(engine, worker, HERE, &lone), [(head(0, 1), b"MN\r\n".to_vec())]);
        let mut noops = vec![0; 48];
        (noops[0], noops[1], noops[24], noops[25]) = (0x80, 0x0a, 0x80, 0x0a);
        assert_eq!(converse(engine, worker, HERE, &framed(&noops)).len(), 2);
    }

    #[test]
    fn whoever_asks_while_data_is_loaded_is_told_so() {
        let (engine, worker) = &mut engine(&[(b"memcached-udp-amplification-max", b"0")]);
        converse(engine, worker, HERE, &framed(b"set k 0 0 1\r\nv\r\n"));
        let loading = engine.begin_loading(0);
        for request in ["get k\r\n", "set k 0 0 1\r\nw\r\n", "mg k v\r\n"] {
            let answers = converse(engine, worker, HERE, &framed(request.as_bytes()));
            assert_eq!(answers.len(), 1, "{request}");
            assert_eq!(answers[0].1, b"SERVER_ERROR loading the dataset in memory\r\n", "{request}");
        }
        drop(loading);
        let answers = converse(engine, worker, HERE, &framed(b"get k\r\n"));
        assert_eq!(answers[0].1, b"VALUE k 0 1\r\nv\r\nEND\r\n");
    }

    #[test]
    fn what_a_pause_holds_up_is_lost() {
        let (engine, worker) = &mut engine(&[]);
        engine.pause.start(u64::MAX, PauseMode::All, 0);
        assert_eq!(converse(engine, worker, HERE, &framed(b"set k 0 0 1\r\nv\r\n")), []);
        assert_eq!(engine.pause.end(), [], "nobody can be told of the end");
        assert_eq!(converse(engine, worker, HERE, &framed(b"get k\r\n"))[0].1, b"END\r\n");
    }

    #[test]
    fn an_answer_is_no_longer_than_its_request_lets_it_be() {
        let (engine, worker) = &mut engine(&[(b"memcached-udp-amplification-max", b"3")]);
        let value = "x".repeat(200);
        let stored = converse(engine, worker, HERE, &framed(format!("set k 0 0 200\r\n{value}\r\n").as_bytes()));
        assert_eq!(stored.len(), 1);
        for len in [7, 20, 60, 90] {
            let request = framed(format!("get k{}\r\n", " ".repeat(len)).as_bytes());
            let sent: usize =
                converse(engine, worker, HERE, &request).iter().map(|(head, part)| head.len() + part.len()).sum();
            assert!(sent <= 3 * request.len(), "{sent} bytes for {}", request.len());
            assert_eq!(sent > 200, len == 90);
        }
        let refused = converse(engine, worker, HERE, &framed(b"get k\r\n"));
        assert_eq!(refused, []);
        let refused = converse(engine, worker, HERE, &framed(b"get k      \r\n"));
        assert_eq!(refused[0].1, TOO_LARGE);
    }

    #[test]
    fn what_is_no_request_is_not_answered() {
        let (engine, worker) = &mut engine(&[]);
        for datagram in [&b""[..], b"get", &[1, 2, 0, 0, 0, 1, 0, 0]] {
            assert_eq!(converse(engine, worker, HERE, datagram), []);
        }
        for request in
            [&b"ERROR\r\n"[..], b"END\r\n", b"VALUE k 0 1\r\nx\r\n", b"get k", b"\x81\x00", b"set k 0 0 9\r\nshort"]
        {
            assert_eq!(converse(engine, worker, HERE, &framed(request)), [], "{}", request.escape_ascii());
        }
        // From elsewhere, as long as the server is protected.
        assert_eq!(converse(engine, worker, "10.1.2.3:5", &framed(b"version\r\n")), []);
        for header in [[1, 2, 0, 0, 0, 2, 0, 0], [1, 2, 0, 1, 0, 2, 0, 0], [1, 2, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(converse(engine, worker, HERE, &[&header, &b"get k\r\n"[..]].concat()), []);
        }
        for request in [&b"watch\r\n"[..], b"watch mutations\r\n"] {
            converse(engine, worker, HERE, &framed(request));
            assert_eq!(engine.watchers.counts().watchers, 0);
        }
    }

    #[test]
    fn who_must_say_who_he_is_cannot() {
        let (engine, worker) = &mut engine(&[(b"memcached-auth", b"yes")]);
        assert_eq!(converse(engine, worker, HERE, &framed(b"version\r\n")), []);
    }

    #[test]
    fn the_binary_protocol_is_spoken_too() {
        let (engine, worker) = &mut engine(&[]);
        let mut noop = vec![0; 24];
        (noop[0], noop[1]) = (0x80, 0x0a);
        let answers = converse(engine, worker, HERE, &framed(&noop));
        assert_eq!((answers.len(), &answers[0].1[..2]), (1, &[0x81, 0x0a][..]));
    }
}

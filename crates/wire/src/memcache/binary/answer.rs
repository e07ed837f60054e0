//! Answers, as they are written.

use super::{BinaryHead, HEADER, Status};

/// The first byte of every answer.
const RESPONSE_MAGIC: u8 = 0x81;

/// What stands between an answer's header and its data.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerFront<'a> {
    /// Extras.
    pub extras: &'a [u8],
    /// The key.
    pub key: &'a [u8],
}

/// Writes the header of an answer, extras and key; `data_len` bytes of data are to follow.
pub fn write_head(
    out: &mut Vec<u8>,
    head: &BinaryHead,
    status: Status,
    cas: u64,
    front: AnswerFront<'_>,
    data_len: usize,
) {
    let key_len = u16::try_from(front.key.len()).expect("a key has at most 250 bytes, and so have names of statistics");
    let extras_len = u8::try_from(front.extras.len()).expect("extras are at most eight bytes");
    let body_len = front.extras.len() + front.key.len() + data_len;
    let body_len = u32::try_from(body_len).expect("a value is shorter than 4 GiB");
    out.reserve(HEADER + front.extras.len() + front.key.len());
    out.extend_from_slice(&[RESPONSE_MAGIC, head.opcode]);
    out.extend_from_slice(&key_len.to_be_bytes());
    out.extend_from_slice(&[extras_len, 0]);
    out.extend_from_slice(&(status as u16).to_be_bytes());
    out.extend_from_slice(&body_len.to_be_bytes());
    out.extend_from_slice(&head.opaque.to_be_bytes());
    out.extend_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(front.extras);
    out.extend_from_slice(front.key);
}

/// Writes an answer without data, or with what there is to say of an error.
pub fn write_status(out: &mut Vec<u8>, head: &BinaryHead, status: Status, cas: u64, text: &str) {
    write_head(out, head, status, cas, AnswerFront::default(), text.len());
    out.extend_from_slice(text.as_bytes());
}

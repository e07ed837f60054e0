//! Libraries as FUNCTION DUMP writes them: Redis's payload, with version and checksum behind. Knows no Lua.

use crate::errors::CmdError;
use tenon_wire::rdb::{self, Compression, Reader, Writer};

/// What FUNCTION RESTORE does about the libraries that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    /// All of them go.
    Flush,
    /// They stay; a name that is taken is an error.
    Append,
    /// Those with the same names go.
    Replace,
}

/// What stands before each library (`RDB_OPCODE_FUNCTION2`).
const OPCODE: u8 = 245;

/// The most bytes of text that compressed libraries of one payload come to.
const CODE_BYTES_MAX: usize = 256 << 20;

/// The payload of libraries with these texts.
pub(crate) fn encode<'a>(codes: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut writer = Writer::new(&mut payload, Compression::On);
    for code in codes {
        writer.byte(OPCODE);
        writer.string(code);
    }
    rdb::seal(&mut payload);
    payload
}

/// The libraries' texts in a payload.
///
/// # Errors
/// When it is none.
pub(crate) fn decode(payload: &[u8]) -> Result<Vec<Vec<u8>>, CmdError> {
    const BAD: CmdError = CmdError::text("ERR DUMP payload version or checksum are wrong");
    const FAILED: CmdError = CmdError::text("ERR Failed loading library data");
    let (mut body, _) = rdb::unseal(payload).ok_or(BAD)?;
    let mut reader = Reader::new(&mut body, CODE_BYTES_MAX);
    let mut codes = Vec::new();
    while let Ok(opcode) = reader.byte() {
        if opcode != OPCODE {
            return Err(CmdError::text("ERR given type is not a function"));
        }
        codes.push(reader.string().map_err(|_| FAILED)?.into_owned());
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_through_and_back() {
        let codes = [&b"#!lua name=a\n"[..], b"x", &[7; 70_000]];
        let payload = encode(codes.into_iter());
        assert_eq!(decode(&payload).unwrap(), codes);
        assert!(decode(&[]).is_err());
        for at in 0..payload.len() {
            if at % 997 == 0 || at + 20 > payload.len() {
                let mut wrong = payload.clone();
                wrong[at] ^= 1;
                assert!(decode(&wrong).is_err(), "{at}");
                assert!(decode(&payload[..at]).is_err(), "{at}");
            }
        }
    }
}

//! What listpacks, ziplists and zipmaps have in common: how strings and integers lie behind their heads, and that there
//! are as many elements as is said. Knows no head.

use super::DecodeError;
use tenon_ds::packed::Item;

/// A string of `len` bytes from byte `start` on, and where it ends.
pub(super) fn string(bytes: &[u8], start: usize, len: usize) -> Option<(usize, Item<'_>)> {
    let end = start.checked_add(len)?;
    Some((end, Item::of(bytes.get(start..end)?)))
}

/// An integer of `width` bytes behind a head of one, little endian, and where it ends.
pub(super) fn int(bytes: &[u8], width: usize) -> Option<(usize, Item<'_>)> {
    let payload = bytes.get(1..1 + width)?;
    let mut wide = [if payload[width - 1] & 0x80 == 0 { 0 } else { 0xFF }; 8];
    wide[..width].copy_from_slice(payload);
    Some((1 + width, Item::Int(i64::from_le_bytes(wide))))
}

/// How many elements are still to come, if that is said.
pub(super) struct Expected(pub(super) Option<u16>);

impl Expected {
    /// Whether another one comes where these bytes are left.
    pub(super) fn next(&mut self, left: &[u8]) -> Option<Result<(), DecodeError>> {
        match (left.is_empty(), self.0) {
            (true, None | Some(0)) => return None,
            (true, Some(_)) | (false, Some(0)) => {
                return Some(Err(DecodeError::malformed("there are not as many elements as is said")));
            }
            (false, _) => {}
        }
        self.0 = self.0.map(|count| count - 1);
        Some(Ok(()))
    }
}

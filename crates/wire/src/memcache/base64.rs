//! Base64 as memcached reads and writes the keys of meta commands (RFC 4648, with padding). Knows no command.

/// What a byte stands for; [`NONE`] for one that stands for nothing.
const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < 64 {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values[b'=' as usize] = 0;
    values
};
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const NONE: u8 = 0x80;

/// Appends what the text encodes; tells whether it encodes anything. As in memcached, bytes that are no digits are passed
/// over, and whatever follows the padding is not looked at.
pub fn decode(text: &[u8], out: &mut Vec<u8>) -> bool {
    let is_digit = |&byte: &u8| VALUES[usize::from(byte)] != NONE;
    let count = text.iter().copied().filter(is_digit).count();
    if count == 0 || !count.is_multiple_of(4) {
        return false;
    }
    let before = out.len();
    let mut digits = text.iter().copied().filter(is_digit);
    while let (Some(a), Some(b), Some(c), Some(d)) = (digits.next(), digits.next(), digits.next(), digits.next()) {
        let bits = [a, b, c, d].iter().fold(0, |bits, &digit| bits << 6 | u32::from(VALUES[usize::from(digit)]));
        let padding = [a, b, c, d].iter().filter(|&&digit| digit == b'=').count();
        if padding > 2 {
            out.truncate(before);
            return false;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
        if padding > 0 {
            break;
        }
    }
    true
}

/// Appends the text that encodes these bytes.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(padded);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            out.push(if digit <= group.len() { DIGITS[value as usize] } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Option<Vec<u8>> {
        let mut out = b"#".to_vec();
        let done = decode(text.as_bytes(), &mut out);
        assert!(done || out == b"#", "what failed leaves nothing behind");
        done.then(|| out[1..].to_vec())
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            prop_assert!(text.len().is_multiple_of(4));
            prop_assert_eq!(decoded(std::str::from_utf8(&text).unwrap()), Some(bytes));
        }
    }

    #[test]
    fn takes_what_memcached_takes() {
        for (text, bytes) in
            [("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmE=", "fooba"), ("Z-m\x019v", "foo"), ("Zm8=Zm9v", "fo")]
        {
            assert_eq!(decoded(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        for text in ["", "Z", "Zm9", "Zm9vY", "-", "Z===", "===="] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}

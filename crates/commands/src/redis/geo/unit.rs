//! Places and lengths as clients write and read them.

use tenon_engine::double::parse_double;
use tenon_engine::errors::CmdError;
use tenon_engine::store::types::geo::Place;
use tenon_engine::wire::resp::{Proto, Reply};

/// Metres in a unit of length.
pub(super) fn parse_unit(text: &[u8]) -> Result<f64, CmdError> {
    match &text.to_ascii_lowercase()[..] {
        b"m" => Ok(1.0),
        b"km" => Ok(1000.0),
        b"ft" => Ok(0.3048),
        b"mi" => Ok(1609.34),
        _ => Err(CmdError::text("ERR unsupported unit provided. please use M, KM, FT, MI")),
    }
}

/// A place of which longitude and latitude are given.
pub(super) fn parse_place(longitude: &[u8], latitude: &[u8]) -> Result<Place, CmdError> {
    let longitude = parse_double(longitude).ok_or(CmdError::NotFloat)?;
    let latitude = parse_double(latitude).ok_or(CmdError::NotFloat)?;
    Place::new(longitude, latitude)
        .ok_or_else(|| CmdError::new(format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}")))
}

/// Writes a distance: four digits behind the point, a string in RESP3 as well.
pub(super) fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    reply.bulk(format!("{distance:.4}").as_bytes());
}

/// Writes longitude and latitude.
pub(super) fn reply_place(reply: &mut Reply<'_>, place: Place) {
    reply.array(2);
    for degrees in [place.longitude, place.latitude] {
        let text = DegreesText::of(degrees);
        match reply.proto() {
            Proto::Resp2 => reply.bulk(text.as_bytes()),
            Proto::Resp3 => [b",", text.as_bytes(), b"\r\n"].into_iter().for_each(|part| reply.raw(part)),
        }
    }
}

/// Digits behind the point, at most.
const FRACTION_DIGITS: usize = 17;
const FRACTION_SCALE: u64 = 10u64.pow(FRACTION_DIGITS as u32);

/// Degrees in decimal: as many digits behind the point as are not zero, 17 at most, the last one rounded from the exact
/// number. What the standard library's formatting makes of any number takes a third of a GEOPOS.
struct DegreesText {
    bytes: [u8; 1 + 3 + 1 + FRACTION_DIGITS],
    len: usize,
}

impl DegreesText {
    fn of(degrees: f64) -> DegreesText {
        debug_assert!(degrees.abs() < 1_000.0, "a circle has 360");
        let mut text = DegreesText { bytes: [0; _], len: 0 };
        // The number is `mantissa / 2^shift`, exactly.
        let bits = degrees.to_bits();
        let biased = (bits >> 52) & 0x7ff;
        let mantissa = bits & ((1 << 52) - 1) | u64::from(biased > 0) << 52;
        let shift = 1_075 - biased.max(1);
        let mut whole = mantissa.checked_shr(shift as u32).unwrap_or(0);
        let fraction = mantissa - whole.checked_shl(shift as u32).unwrap_or(0);
        let mut digits = 0;
        // The product is below 2^110: from there on it is less than half of the last digit.
        if shift <= 110 {
            let product = u128::from(fraction) * u128::from(FRACTION_SCALE);
            let (below, half) = (product & ((1 << shift) - 1), 1 << (shift - 1));
            digits = (product >> shift) as u64;
            digits += u64::from(below > half || below == half && digits % 2 == 1);
            if digits == FRACTION_SCALE {
                (whole, digits) = (whole + 1, 0);
            }
        }
        if degrees.is_sign_negative() {
            text.push(b"-");
        }
        text.push(itoa::Buffer::new().format(whole).as_bytes());
        if digits > 0 {
            // A one before them keeps the zeros that they begin with.
            let mut buffer = itoa::Buffer::new();
            let digits = &buffer.format(FRACTION_SCALE + digits).as_bytes()[1..];
            let used = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
            text.push(b".");
            text.push(&digits[..used]);
        }
        text
    }

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_are_as_the_standard_library_writes_them() {
        let fixed = [0.0, -0.0, 1e-17, 5e-18, 5.1e-18, 1e-40, f64::MIN_POSITIVE, 0.5, 180.0, -85.05112878, 1.0 - 1e-16];
        let mut bits = 1_u64;
        let random = std::iter::repeat_with(|| {
            bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (bits >> 11) as f64 / (1_u64 << 53) as f64 * 360.0 - 180.0
        });
        for degrees in fixed.into_iter().chain(random.take(20_000)) {
            for degrees in [degrees, degrees / 1e6, degrees * 1e-13] {
                let wanted = format!("{degrees:.17}");
                let wanted = wanted.trim_end_matches('0').trim_end_matches('.');
                let text = DegreesText::of(degrees);
                assert_eq!(str::from_utf8(text.as_bytes()), Ok(wanted), "{degrees:e}");
            }
        }
    }
}

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
    match Decimal::rounded::<4>(distance) {
        Some(decimal) => reply.bulk(decimal.as_bytes()),
        None => reply.bulk(format!("{distance:.4}").as_bytes()),
    }
}

/// Writes longitude and latitude.
pub(super) fn reply_place(reply: &mut Reply<'_>, place: Place) {
    reply.array(2);
    for degrees in [place.longitude, place.latitude] {
        let decimal = Decimal::of_degrees(degrees);
        let text = decimal.without_last_zeros();
        match reply.proto() {
            Proto::Resp2 => reply.bulk(text),
            Proto::Resp3 => [b",", text, b"\r\n"].into_iter().for_each(|part| reply.raw(part)),
        }
    }
}

/// A number in decimal, its last digit rounded from the exact number, and to the even one of two that are as near: what the
/// standard library's formatting makes of it. That takes a third of a GEOPOS, and a fifth of a GEOSEARCH with distances.
struct Decimal {
    bytes: [u8; 1 + 16 + 1 + DIGITS_MAX],
    len: usize,
}

/// Digits behind the point, at most.
const DIGITS_MAX: usize = 17;

impl Decimal {
    /// Degrees with as many digits as there may be.
    fn of_degrees(degrees: f64) -> Decimal {
        Decimal::rounded::<DIGITS_MAX>(degrees).expect("a circle has 360")
    }

    /// A number with so many digits behind the point. `None`: it is 2^52 or more, or no number.
    fn rounded<const DIGITS: usize>(number: f64) -> Option<Decimal> {
        const { assert!(DIGITS <= DIGITS_MAX) };
        let scale = const { 10u64.pow(DIGITS as u32) };
        // The number is `mantissa / 2^shift`, exactly.
        let bits = number.to_bits();
        let biased = (bits >> 52) & 0x7ff;
        let mantissa = bits & ((1 << 52) - 1) | u64::from(biased > 0) << 52;
        let shift = 1_075u64.checked_sub(biased.max(1)).filter(|shift| *shift > 0)?;
        let mut whole = mantissa.checked_shr(shift as u32).unwrap_or(0);
        let fraction = mantissa - whole.checked_shl(shift as u32).unwrap_or(0);
        let mut digits = 0;
        // The product is below 2^110: from there on it is less than half of the last digit.
        if shift <= 110 {
            let product = u128::from(fraction) * u128::from(scale);
            let (below, half) = (product & ((1 << shift) - 1), 1 << (shift - 1));
            digits = (product >> shift) as u64;
            digits += u64::from(below > half || below == half && digits % 2 == 1);
            if digits == scale {
                (whole, digits) = (whole + 1, 0);
            }
        }
        let mut decimal = Decimal { bytes: [0; _], len: 0 };
        if number.is_sign_negative() {
            decimal.push(b"-");
        }
        decimal.push(itoa::Buffer::new().format(whole).as_bytes());
        decimal.push(b".");
        // A one before them keeps the zeros that they begin with.
        decimal.push(&itoa::Buffer::new().format(scale + digits).as_bytes()[1..]);
        Some(decimal)
    }

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += part.len();
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Its text without the zeros that it ends with, and without a point that has nothing behind it.
    fn without_last_zeros(&self) -> &[u8] {
        let text = self.as_bytes();
        let last = text.iter().rposition(|byte| *byte != b'0').expect("there is a point");
        &text[..last + usize::from(text[last] != b'.')]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(number: f64) {
        let text = Decimal::rounded::<4>(number);
        assert_eq!(text.is_some(), number.abs() < (1u64 << 52) as f64, "{number:e}");
        let Some(text) = text else { return };
        assert_eq!(str::from_utf8(text.as_bytes()), Ok(&*format!("{number:.4}")), "{number:e}");
        let text = Decimal::rounded::<17>(number).expect("it is one with four digits");
        let wanted = format!("{number:.17}");
        assert_eq!(str::from_utf8(text.as_bytes()), Ok(&*wanted), "{number:e}");
        let wanted = wanted.trim_end_matches('0').trim_end_matches('.');
        assert_eq!(str::from_utf8(text.without_last_zeros()), Ok(wanted), "{number:e}");
    }

    #[test]
    fn numbers_are_as_the_standard_library_writes_them() {
        let fixed = [0.0, 1e-17, 5e-18, 5.1e-18, 1e-40, f64::MIN_POSITIVE, 5e-324, 180.0, 85.05112878, 1.0 - 1e-16];
        let bounds = [4_503_599_627_370_495.5, 4_503_599_627_370_496.0, 1e300, f64::INFINITY, f64::NAN];
        for number in fixed.into_iter().chain(bounds).chain([0.00005, 0.99995, 9999.99995, 0.99994999999999]) {
            [number, -number].into_iter().for_each(check);
        }
        // With four digits those are in the middle of two that have one bit of a 32nd.
        (0..100_000).for_each(|part| check(f64::from(part) / 32.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn any_number_is_as_the_standard_library_writes_it(
            bits: u64,
            degrees in -180.0..180.0,
            distance in 0.0..70_000_000.0,
            tenths in 0..1u64 << 50,
        ) {
            let near_middle = tenths as f64 / 1e4 + 0.00005;
            for number in [f64::from_bits(bits), degrees, degrees / 1e6, degrees * 1e-13, distance, near_middle] {
                check(number);
            }
        }
    }
}

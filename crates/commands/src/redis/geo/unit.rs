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

/// Writes a distance: four digits behind the point, a string in RESP3 as well. Its last digit is Redis's, which rounds what ten
/// thousand times the distance is in floating point.
pub(super) fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    let scaled = (distance * 1e4).round_ties_even();
    // Where that is no whole number of 64 bits, members have scores that are no places.
    if !(0.0..i64::MAX as f64).contains(&scaled) {
        return reply.bulk(format!("{distance:.4}").as_bytes());
    }
    let scaled = scaled as u64;
    reply.bulk(Decimal::of_parts(Sign::None, scaled / 10_000, scaled % 10_000, 10_000).as_bytes());
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

/// A number in decimal.
struct Decimal {
    bytes: [u8; 1 + 16 + 1 + DIGITS],
    len: usize,
}

/// Whether a number is below zero.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    None,
    Minus,
}

/// Digits of degrees behind the point, and their power of ten.
const DIGITS: usize = 17;
const SCALE: u64 = 10u64.pow(DIGITS as u32);

impl Decimal {
    /// Degrees with all digits that there may be, the last rounded from the exact number, and to the even one of two that are as
    /// near: what the standard library's formatting makes of it. That takes a third of a GEOPOS.
    fn of_degrees(degrees: f64) -> Decimal {
        Decimal::rounded(degrees).expect("a circle has 360")
    }

    /// `None`: it is 2^52 or more, or no number.
    fn rounded(number: f64) -> Option<Decimal> {
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
            let product = u128::from(fraction) * u128::from(SCALE);
            let (below, half) = (product & ((1 << shift) - 1), 1 << (shift - 1));
            digits = (product >> shift) as u64;
            digits += u64::from(below > half || below == half && digits % 2 == 1);
            if digits == SCALE {
                (whole, digits) = (whole + 1, 0);
            }
        }
        let sign = if number.is_sign_negative() { Sign::Minus } else { Sign::None };
        Some(Decimal::of_parts(sign, whole, digits, SCALE))
    }

    /// Of what stands before the point and behind it; `scale` has as many zeros as that has digits.
    #[inline]
    fn of_parts(sign: Sign, whole: u64, digits: u64, scale: u64) -> Decimal {
        let mut decimal = Decimal { bytes: [0; _], len: 0 };
        if sign == Sign::Minus {
            decimal.push(b"-");
        }
        decimal.push(itoa::Buffer::new().format(whole).as_bytes());
        decimal.push(b".");
        // A one before them keeps the zeros that they begin with.
        decimal.push(&itoa::Buffer::new().format(scale + digits).as_bytes()[1..]);
        decimal
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
        let text = Decimal::rounded(number);
        assert_eq!(text.is_some(), number.abs() < (1u64 << 52) as f64, "{number:e}");
        let Some(text) = text else { return };
        let wanted = format!("{number:.17}");
        assert_eq!(str::from_utf8(text.as_bytes()), Ok(&*wanted), "{number:e}");
        let wanted = wanted.trim_end_matches('0').trim_end_matches('.');
        assert_eq!(str::from_utf8(text.without_last_zeros()), Ok(wanted), "{number:e}");
    }

    fn shown_distance(distance: f64) -> String {
        let mut out = tenon_engine::wire::OutBuf::new();
        reply_distance(&mut Reply::new(&mut out, Proto::Resp2), distance);
        String::from_utf8(out.take_joined()).expect("text")
    }

    #[test]
    fn distances_are_rounded_as_redis_rounds_them() {
        // GEODIST of two places: Redis 7.0.15, 8.0.6 and Valkey 9.1.2. The exact number is nearer to ...387.
        assert_eq!(shown_distance(11_128_082.638_75), "$13\r\n11128082.6388\r\n");
        for (distance, shown) in [
            (0.0, "0.0000"),
            (0.00005, "0.0000"),
            (0.00015, "0.0001"),
            (0.99995, "1.0000"),
            (166_274.151_56, "166274.1516"),
            (1e15, "1000000000000000.0000"),
            (1e17, "100000000000000000.0000"),
            (f64::INFINITY, "inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shown_distance(distance), format!("${}\r\n{shown}\r\n", shown.len()), "{distance:e}");
        }
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

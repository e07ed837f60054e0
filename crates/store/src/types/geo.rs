//! Places on earth as scores of a sorted set: 52 bits in which those of latitude and longitude take turns, so that what
//! is near lies mostly together. The same numbers as Redis's. Knows no sorted set.
//!
//! ```text
//! bit  51   50   49   48  ...  1    0
//!     lon  lat  lon  lat  ... lon  lat      each the place's share of its range, times 2^26
//! ```
//!
//! What lies around a place is found by cells (`area`).

mod area;

use area::Cell;
pub use area::{Polygon, Shape};

/// The longitudes there are, in degrees.
const LONGITUDES: Degrees = Degrees { min: -180.0, max: 180.0 };
/// The latitudes that the projection (EPSG:900913) has, in degrees.
const LATITUDES: Degrees = Degrees { min: -85.051_128_78, max: 85.051_128_78 };
/// The latitudes of geohashes as others write them, in degrees.
const ALL_LATITUDES: Degrees = Degrees { min: -90.0, max: 90.0 };

/// Bits of each of the two in a score.
const STEPS_MAX: u32 = 26;
/// Radius of the earth in metres: the quadratic mean of WGS 84.
const EARTH_RADIUS: f64 = 6_372_797.560_856;

/// A range of degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Degrees {
    min: f64,
    max: f64,
}

impl Degrees {
    fn contains(self, degrees: f64) -> bool {
        (self.min..=self.max).contains(&degrees)
    }

    /// Takes these degrees in.
    fn widen(&mut self, degrees: f64) {
        self.min = self.min.min(degrees);
        self.max = self.max.max(degrees);
    }

    /// The share of the range before these degrees, in `2^steps` parts.
    fn part_of(self, degrees: f64, steps: u32) -> u32 {
        ((degrees - self.min) / (self.max - self.min) * f64::from(1u32 << steps)) as u32
    }

    /// Where a part begins.
    fn start_of(self, part: u32, steps: u32) -> f64 {
        self.min + f64::from(part) / f64::from(1u32 << steps) * (self.max - self.min)
    }

    /// What a part covers.
    fn of_part(self, part: u32, steps: u32) -> Degrees {
        Degrees { min: self.start_of(part, steps), max: self.start_of(part.wrapping_add(1), steps) }
    }

    /// The middle of a part, within the range.
    fn middle_of(self, part: u32, steps: u32) -> f64 {
        let Degrees { min, max } = self.of_part(part, steps);
        ((min + max) / 2.0).clamp(self.min, self.max)
    }
}

/// A place in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// East of Greenwich.
    pub longitude: f64,
    /// North of the equator.
    pub latitude: f64,
}

/// The bits of a number, each followed by a gap.
fn spread(bits: u32) -> u64 {
    let mut spread = u64::from(bits);
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        spread = (spread | spread << shift) & mask;
    }
    spread
}

/// Every other bit of a number, from the lowest on.
fn gathered(bits: u64) -> u32 {
    let mut gathered = bits & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF),
    ] {
        gathered = (gathered | gathered >> shift) & mask;
    }
    gathered as u32
}

impl Place {
    /// The place, if there is one and the projection has it.
    pub fn new(longitude: f64, latitude: f64) -> Option<Place> {
        (LONGITUDES.contains(longitude) && LATITUDES.contains(latitude)).then_some(Place { longitude, latitude })
    }

    /// The score of the place.
    pub fn score(self) -> f64 {
        Cell::of(self, STEPS_MAX).bits() as f64
    }

    /// The place of a score, the middle of what rounds to it; of any number some place.
    pub fn of_score(score: f64) -> Place {
        // C leaves open what comes of other numbers; x86 gives the two's complement of negative ones, and 0 for large ones.
        let bits = match score {
            ..0.0 => score as i64 as u64,
            18_446_744_073_709_551_616.0.. => 0,
            _ => score as u64,
        };
        Place {
            longitude: LONGITUDES.middle_of(gathered(bits >> 1), STEPS_MAX),
            latitude: LATITUDES.middle_of(gathered(bits), STEPS_MAX),
        }
    }

    /// The geohash that others know: eleven characters.
    pub fn geohash(self) -> [u8; 11] {
        const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
        let latitude = ALL_LATITUDES.part_of(self.latitude, STEPS_MAX);
        let longitude = LONGITUDES.part_of(self.longitude, STEPS_MAX);
        let bits = spread(latitude) | spread(longitude) << 1;
        // Ten characters are fifty bits; Redis does not say the last two.
        std::array::from_fn(|index| match index {
            10 => ALPHABET[0],
            index => ALPHABET[(bits >> (52 - (index + 1) * 5) & 0x1f) as usize],
        })
    }

    /// The way to another place in metres, on a sphere (haversine).
    pub fn distance(self, other: Place) -> f64 {
        Centre::new(self).distance(other)
    }
}

/// A place that many others are measured from: what it adds to each distance is worked out once.
#[derive(Clone, Copy, Debug)]
pub struct Centre {
    /// In radians, as is the latitude.
    longitude: f64,
    latitude: f64,
    latitude_cos: f64,
}

impl Centre {
    /// Measures from this place.
    pub fn new(place: Place) -> Centre {
        let latitude = place.latitude.to_radians();
        Centre { longitude: place.longitude.to_radians(), latitude, latitude_cos: latitude.cos() }
    }

    /// The way to another place in metres, on a sphere (haversine).
    pub fn distance(&self, other: Place) -> f64 {
        let v = self.half_angle_sin(other);
        if v == 0.0 {
            return self.distance_north(other);
        }
        self.distance_of(v, other, other.latitude.to_radians().cos())
    }

    /// The way north or south to the other place's latitude.
    fn distance_north(&self, other: Place) -> f64 {
        EARTH_RADIUS * (other.latitude.to_radians() - self.latitude).abs()
    }

    /// The sine of half the angle between the longitudes.
    fn half_angle_sin(&self, other: Place) -> f64 {
        ((other.longitude.to_radians() - self.longitude) / 2.0).sin()
    }

    /// The way to another place of which that sine and the latitude's cosine are known.
    fn distance_of(&self, v: f64, other: Place, latitude_cos: f64) -> f64 {
        let u = ((other.latitude.to_radians() - self.latitude) / 2.0).sin();
        let a = u * u + self.latitude_cos * latitude_cos * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    /// How far a place is, if it is no further north or south than `north`, and no further east or west on its own latitude
    /// than `east`.
    fn distance_in_box(&self, place: Place, north: f64, east: f64) -> Option<f64> {
        let north_of_centre = self.distance_north(place);
        let is_near = north_of_centre <= north;
        if !is_near {
            return None;
        }
        let (v, latitude_cos) = (self.half_angle_sin(place), place.latitude.to_radians().cos());
        let east_of_centre = 2.0 * EARTH_RADIUS * (latitude_cos * latitude_cos * v * v).sqrt().asin();
        let distance = || if v == 0.0 { north_of_centre } else { self.distance_of(v, place, latitude_cos) };
        (east_of_centre <= east).then(distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PALERMO: Place = Place { longitude: 13.361_389, latitude: 38.115_556 };
    const CATANIA: Place = Place { longitude: 15.087_269, latitude: 37.502_669 };

    #[test]
    fn scores_and_geohashes_are_those_of_redis() {
        // GEOADD, ZSCORE, GEOHASH and GEODIST of redis-server 7.0.15.
        assert_eq!(PALERMO.score(), 3_479_099_956_230_698.0);
        assert_eq!(CATANIA.score(), 3_479_447_370_796_909.0);
        let [palermo, catania] = [PALERMO, CATANIA].map(|place| Place::of_score(place.score()));
        assert_eq!((&palermo.geohash(), &catania.geohash()), (b"sqc8b49rny0", b"sqdtr74hyu0"));
        assert_eq!(format!("{:.4}", palermo.distance(catania)), "166274.1516");
        assert_eq!(Place::new(180.1, 0.0), None);
        assert_eq!(Place::new(0.0, -85.06), None);
        assert_eq!(Place::new(f64::NAN, 0.0), None);
    }

    #[test]
    fn bits_take_turns() {
        for bits in [0, 1, 0x0155_5555, 0x03ff_ffff, 0x1234_5678, u32::MAX] {
            assert_eq!(gathered(spread(bits) | spread(!bits) << 1), bits);
        }
    }
}

//! Areas around a place, and the scores among which all that lies in them is. Knows no sorted set.
//!
//! A search looks through the cell of its centre and the eight around it, whose size is chosen so that they cover it.

use super::super::zset::{ScoreBound, ScoreRange};
use super::{Centre, Degrees, EARTH_RADIUS, LATITUDES, LONGITUDES, Place, STEPS_MAX, spread};

/// Half of the circumference that the projection has, in metres.
const MERCATOR_MAX: f64 = 20_037_726.37;

/// What is searched around a centre, in metres.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// All that is no further than this.
    Circle {
        /// Of the circle.
        radius: f64,
    },
    /// All that is no further east or west, north or south, than the half of these.
    Box {
        /// From west to east.
        width: f64,
        /// From south to north.
        height: f64,
    },
    /// All that is within this; the centre is the polygon's own.
    Polygon(Polygon),
}

impl Shape {
    /// How far a place is from the centre, if it is in the shape around that.
    pub fn distance_within(&self, centre: &Centre, place: Place) -> Option<f64> {
        /// A way north or south is no longer than the way, but for how both are rounded.
        const ROUNDED: f64 = 1.0 + 1e-6;
        match self {
            Shape::Circle { radius } if centre.distance_north(place) > radius * ROUNDED => None,
            Shape::Circle { radius } => Some(centre.distance(place)).filter(|distance| distance <= radius),
            Shape::Box { width, height } => centre.distance_in_box(place, height / 2.0, width / 2.0),
            Shape::Polygon(polygon) => polygon.contains(place).then(|| centre.distance(place)),
        }
    }

    /// The scores among which all places of the shape around a centre are, in the order in which Redis looks through
    /// them.
    pub fn score_ranges(&self, centre: Place) -> Vec<ScoreRange> {
        let bounds = self.bounds(centre);
        let mut steps = self.steps(centre);
        let is_polygon = matches!(self, Shape::Polygon(_));
        // The centre of a polygon may be beyond the map, or where its east is its west.
        let cell_of = |steps| if is_polygon { Cell::nearest(centre, steps) } else { Cell::of(centre, steps) };
        let mut cell = cell_of(steps);
        // A circle or a box is covered by cells of twice the size at most, as far as Redis looks; the centre of a polygon
        // may lie near its edge.
        let mut widened = 0;
        let most = if is_polygon { STEPS_MAX } else { 1 };
        while widened < most && steps > 1 && !bounds.are_reached_around(cell) {
            steps -= 1;
            cell = cell_of(steps);
            widened += 1;
        }
        // Where the cell itself reaches beyond the shape, the next one on that side is not needed. Of the four largest
        // cells all are looked through.
        let needed = |east: i32, north: i32| {
            steps < 2
                || !((north < 0 && cell.latitudes().min < bounds.latitudes.min)
                    || (north > 0 && cell.latitudes().max > bounds.latitudes.max)
                    || (east < 0 && cell.longitudes().min < bounds.longitudes.min)
                    || (east > 0 && cell.longitudes().max > bounds.longitudes.max))
        };
        const AROUND: [(i32, i32); 9] = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1)];
        let mut cells: Vec<Cell> = Vec::with_capacity(AROUND.len());
        for (east, north) in AROUND.into_iter().filter(|&(east, north)| needed(east, north)) {
            let next = cell.moved(east, north);
            // Around the earth and around the poles the same cell may be on both sides.
            if !cells.contains(&next) {
                cells.push(next);
            }
        }
        cells.into_iter().map(Cell::scores).collect()
    }

    /// About how far the shape reaches.
    fn bounds(&self, centre: Place) -> Bounds {
        let (width, height) = match self {
            Shape::Circle { radius } => (*radius, *radius),
            Shape::Box { width, height } => (width / 2.0, height / 2.0),
            Shape::Polygon(polygon) => return polygon.bounds,
        };
        let north = (height / EARTH_RADIUS).to_degrees();
        // Towards the pole a degree is shorter.
        let widest = if centre.latitude < 0.0 { centre.latitude - north } else { centre.latitude + north };
        let east = (width / EARTH_RADIUS / widest.to_radians().cos()).to_degrees();
        Bounds {
            longitudes: Degrees { min: centre.longitude - east, max: centre.longitude + east },
            latitudes: Degrees { min: centre.latitude - north, max: centre.latitude + north },
        }
    }

    /// How often the earth is halved for cells of about the shape's size.
    fn steps(&self, centre: Place) -> u32 {
        let mut reach = match self {
            Shape::Circle { radius } => *radius,
            Shape::Box { width, height } => (width / 2.0).hypot(height / 2.0),
            Shape::Polygon(polygon) => polygon.bounds.reach(centre),
        };
        if reach == 0.0 {
            return STEPS_MAX;
        }
        let mut steps: i32 = 1;
        while reach < MERCATOR_MAX {
            reach *= 2.0;
            steps += 1;
        }
        // So that most shapes are covered at once; wider towards the poles.
        steps -= 2;
        steps -= i32::from(centre.latitude.abs() > 66.0) + i32::from(centre.latitude.abs() > 80.0);
        steps.clamp(1, STEPS_MAX as i32) as u32
    }
}

/// What a shape lies in.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    longitudes: Degrees,
    latitudes: Degrees,
}

impl Bounds {
    /// Whether a cell and the eight around it cover them.
    fn are_reached_around(&self, cell: Cell) -> bool {
        cell.moved(0, 1).latitudes().max >= self.latitudes.max
            && cell.moved(0, -1).latitudes().min <= self.latitudes.min
            && cell.moved(1, 0).longitudes().max >= self.longitudes.max
            && cell.moved(-1, 0).longitudes().min <= self.longitudes.min
    }

    /// The way to the farthest corner, in metres.
    fn reach(&self, centre: Place) -> f64 {
        let Bounds { longitudes, latitudes } = *self;
        let corners = [longitudes.min, longitudes.max]
            .into_iter()
            .flat_map(|longitude| [latitudes.min, latitudes.max].map(|latitude| Place { longitude, latitude }));
        corners.map(|corner| centre.distance(corner)).fold(0.0, f64::max)
    }
}

/// An area between straight lines on the map of longitudes and latitudes, as Valkey's GEOSEARCH takes it: none crosses
/// the other side of the earth, where longitudes begin anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    corners: Vec<Place>,
    bounds: Bounds,
}

impl Polygon {
    /// The polygon with these corners, in their order around it; the last is joined to the first. `None`: they are less
    /// than three.
    pub fn new(corners: Vec<Place>) -> Option<Polygon> {
        let first = *corners.first().filter(|_| corners.len() >= 3)?;
        let at = |degrees| Degrees { min: degrees, max: degrees };
        let mut bounds = Bounds { longitudes: at(first.longitude), latitudes: at(first.latitude) };
        for corner in &corners {
            bounds.longitudes.widen(corner.longitude);
            bounds.latitudes.widen(corner.latitude);
        }
        Some(Polygon { corners, bounds })
    }

    /// How many corners it has.
    pub fn corners(&self) -> usize {
        self.corners.len()
    }

    /// The middle of the corners on the sphere, which distances are measured from.
    pub fn centre(&self) -> Place {
        let (mut x, mut y, mut z) = (0.0, 0.0, 0.0);
        for corner in &self.corners {
            let (longitude, latitude) = (corner.longitude.to_radians(), corner.latitude.to_radians());
            x += latitude.cos() * longitude.cos();
            y += latitude.cos() * longitude.sin();
            z += latitude.sin();
        }
        Place { longitude: y.atan2(x).to_degrees(), latitude: z.atan2(x.hypot(y)).to_degrees() }
    }

    /// Whether a place is within: a line from it to the east crosses the sides an odd number of times.
    fn contains(&self, place: Place) -> bool {
        // Most places around a polygon are not in its bounds, and need no look at its sides.
        if !self.bounds.longitudes.contains(place.longitude) || !self.bounds.latitudes.contains(place.latitude) {
            return false;
        }
        let Some(mut before) = self.corners.last().copied() else { return false };
        let mut is_in = false;
        for &corner in &self.corners {
            if (corner.latitude > place.latitude) != (before.latitude > place.latitude) {
                let share = (place.latitude - corner.latitude) / (before.latitude - corner.latitude);
                is_in ^= place.longitude < (before.longitude - corner.longitude) * share + corner.longitude;
            }
            before = corner;
        }
        is_in
    }
}

/// A part of the earth: one of `2^steps` parts of each of the two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    latitude: u32,
    longitude: u32,
    steps: u32,
}

impl Cell {
    pub(super) fn of(place: Place, steps: u32) -> Cell {
        Cell {
            latitude: LATITUDES.part_of(place.latitude, steps),
            longitude: LONGITUDES.part_of(place.longitude, steps),
            steps,
        }
    }

    /// One that there is, for a place beyond the map, too.
    fn nearest(place: Place, steps: u32) -> Cell {
        let Cell { latitude, longitude, .. } = Cell::of(place, steps);
        let last = (1 << steps) - 1;
        Cell { latitude: latitude.min(last), longitude: longitude.min(last), steps }
    }

    pub(super) fn bits(self) -> u64 {
        spread(self.latitude) | spread(self.longitude) << 1
    }

    fn latitudes(self) -> Degrees {
        LATITUDES.of_part(self.latitude, self.steps)
    }

    fn longitudes(self) -> Degrees {
        LONGITUDES.of_part(self.longitude, self.steps)
    }

    /// The cell so many to the east and to the north, around the earth.
    fn moved(self, east: i32, north: i32) -> Cell {
        let around = |part: u32, by: i32| match by {
            0 => part,
            by => part.wrapping_add_signed(by) & ((1 << self.steps) - 1),
        };
        Cell { latitude: around(self.latitude, north), longitude: around(self.longitude, east), ..self }
    }

    /// The scores of the places in the cell.
    fn scores(self) -> ScoreRange {
        let shift = 2 * (STEPS_MAX - self.steps);
        let (first, end) = (self.bits() << shift, (self.bits() + 1) << shift);
        ScoreRange { min: ScoreBound::Inclusive(first as f64), max: ScoreBound::Exclusive(end as f64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers by chance, each below what is asked.
    fn numbers(seed: u64) -> impl FnMut(f64) -> f64 {
        let mut random = seed;
        move |bound| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 11) as f64 / (1u64 << 53) as f64 * bound
        }
    }

    #[test]
    fn score_ranges_cover_the_shape() {
        let mut next = numbers(7);
        for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
            // Away from the poles and from the other side of the earth, where Redis's areas may fall short.
            let centre = Place::new(next(340.0) - 170.0, next(120.0) - 60.0).unwrap();
            let size = 10f64.powf(next(4.5) + 1.0);
            let shape = match size as u64 % 2 {
                0 => Shape::Circle { radius: size },
                _ => Shape::Box { width: size, height: size / 2.0 },
            };
            let ranges = shape.score_ranges(centre);
            for _ in 0..20 {
                let spot = Place::new(
                    centre.longitude + (next(2.0) - 1.0) * size / 60_000.0,
                    centre.latitude + (next(2.0) - 1.0) * size / 111_000.0,
                );
                let Some(spot) = spot.map(|spot| Place::of_score(spot.score())) else { continue };
                if shape.distance_within(&Centre::new(centre), spot).is_some() {
                    let score = spot.score();
                    let covering = ranges.iter().filter(|range| !range.is_above(score) && range.reaches(score)).count();
                    assert_eq!(covering, 1, "{centre:?} {shape:?} {spot:?}");
                }
            }
        }
    }

    /// As Redis measures: each distance by itself.
    fn plain_distance(one: Place, other: Place) -> f64 {
        let v = ((other.longitude.to_radians() - one.longitude.to_radians()) / 2.0).sin();
        if v == 0.0 {
            return EARTH_RADIUS * (other.latitude.to_radians() - one.latitude.to_radians()).abs();
        }
        let (latitude, other_latitude) = (one.latitude.to_radians(), other.latitude.to_radians());
        let u = ((other_latitude - latitude) / 2.0).sin();
        let a = u * u + latitude.cos() * other_latitude.cos() * v * v;
        2.0 * EARTH_RADIUS * a.sqrt().asin()
    }

    #[test]
    fn what_is_known_of_the_centre_changes_no_bit_of_a_distance() {
        let mut next = numbers(5);
        let mut within = 0;
        for round in 0..if cfg!(miri) { 100 } else { 200_000 } {
            let centre = Place { longitude: next(360.0) - 180.0, latitude: next(170.0) - 85.0 };
            // As wide as anything, or near; some on the same meridian or parallel.
            let reach = if round % 2 == 0 { 1.0 } else { 0.01 };
            let mut place = Place {
                longitude: centre.longitude + (next(360.0) - 180.0) * reach,
                latitude: (centre.latitude + (next(170.0) - 85.0) * reach).clamp(LATITUDES.min, LATITUDES.max),
            };
            match round % 16 {
                0 | 1 => place.longitude = centre.longitude,
                2 | 3 => place.latitude = centre.latitude,
                _ => {}
            }
            let distance = plain_distance(centre, place);
            assert_eq!(centre.distance(place).to_bits(), distance.to_bits(), "{centre:?} {place:?}");
            let beside = Place { latitude: place.latitude, ..centre };
            let east = plain_distance(place, beside);
            let north = EARTH_RADIUS * (place.latitude.to_radians() - centre.latitude.to_radians()).abs();
            // Such that what is right on the edge is in.
            for (radius, width, height) in [
                (distance, east * 2.0, north * 2.0),
                (distance * next(2.0), east * next(4.0), north * next(4.0)),
                (distance.next_down(), (east * 2.0).next_down(), (north * 2.0).next_down()),
            ] {
                let found = |shape: Shape| shape.distance_within(&Centre::new(centre), place).map(f64::to_bits);
                let of = |is_in: bool| is_in.then_some(distance.to_bits());
                assert_eq!(found(Shape::Circle { radius }), of(distance <= radius), "{centre:?} {place:?} {radius}");
                let is_in = north <= height / 2.0 && east <= width / 2.0;
                assert_eq!(found(Shape::Box { width, height }), of(is_in), "{centre:?} {place:?} {width} {height}");
                within += usize::from(is_in);
            }
        }
        assert!(within > 100, "{within}");
    }

    #[test]
    fn polygons_contain_what_lies_between_their_sides() {
        let place = |(longitude, latitude)| Place { longitude, latitude };
        let polygon = |corners: &[(f64, f64)]| Polygon::new(corners.iter().copied().map(place).collect());
        assert_eq!(polygon(&[(0.0, 0.0), (1.0, 1.0)]), None);
        // An arrowhead: its notch is outside.
        let arrow = polygon(&[(0.0, 0.0), (4.0, 2.0), (0.0, 4.0), (1.0, 2.0)]).unwrap();
        for (spot, is_in) in [
            ((2.0, 2.0), true),
            ((0.5, 2.0), false),
            ((0.5, 0.5), true),
            ((0.5, 3.5), true),
            ((3.0, 0.5), false),
            ((-0.1, 2.0), false),
            ((2.0, 4.1), false),
        ] {
            assert_eq!(arrow.contains(place(spot)), is_in, "{spot:?}");
        }
        // In whatever order they are given.
        let square = polygon(&[(1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)]).unwrap();
        let (centre, shape) = (square.centre(), Shape::Polygon(square));
        assert!(centre.longitude.abs() < 1e-9 && centre.latitude.abs() < 1e-9, "{centre:?}");
        let corner = Place { longitude: 0.999, latitude: 0.999 };
        let centre = Centre::new(centre);
        assert_eq!(shape.distance_within(&centre, corner), Some(centre.distance(corner)));
        assert_eq!(shape.distance_within(&centre, Place { longitude: 1.001, latitude: 0.0 }), None);
        // Without an area nothing is within.
        let line = polygon(&[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]).unwrap();
        assert!(!line.contains(place((3.0, 3.0))) && !line.contains(place((1.0, 1.5))));
    }

    #[test]
    fn score_ranges_cover_polygons_around_the_earth() {
        let place = |(longitude, latitude)| Place { longitude, latitude };
        for corners in [
            &[(-180.0, -85.0), (180.0, -85.0), (180.0, 85.0), (-180.0, 85.0)][..],
            &[(-120.0, -40.0), (120.0, -40.0), (120.0, 60.0), (-120.0, 60.0)],
            // Its centre is near a pole.
            &[(-120.0, -10.0), (0.0, -10.0), (120.0, -10.0), (120.0, 80.0), (0.0, 80.0), (-120.0, 80.0)],
            &[(-120.0, 10.0), (0.0, 10.0), (120.0, 10.0), (120.0, -80.0), (0.0, -80.0), (-120.0, -80.0)],
        ] {
            let polygon = Polygon::new(corners.iter().copied().map(place).collect()).unwrap();
            let (centre, shape) = (polygon.centre(), Shape::Polygon(polygon));
            let ranges = shape.score_ranges(centre);
            for spot in
                (-17..18).flat_map(|x| (-8..9).map(move |y| (f64::from(x) * 10.0 + 0.5, f64::from(y) * 10.0 + 0.5)))
            {
                let place = place(spot);
                let covering =
                    ranges.iter().filter(|range| !range.is_above(place.score()) && range.reaches(place.score()));
                let is_within = shape.distance_within(&Centre::new(centre), place).is_some();
                assert!(covering.count() == 1 || !is_within, "{centre:?} {place:?} {ranges:?}");
            }
        }
    }

    #[test]
    fn score_ranges_cover_polygons() {
        let mut next = numbers(11);
        for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
            // From a few metres to most of the map, with the corners heaped up on one side.
            let (width, height) = (10f64.powf(next(7.0) - 4.6), 10f64.powf(next(6.0) - 4.0));
            let (west, south) = (next(360.0 - width.min(359.0)) - 180.0, next(170.0 - height.min(169.0)) - 85.0);
            let spot = |x: f64, y: f64| Place::new((west + x * width).min(180.0), (south + y * height).min(85.0));
            let mut corners: Vec<Place> = (0..next(6.0) as usize).filter_map(|_| spot(next(0.1), next(0.1))).collect();
            corners.extend([spot(0.0, 0.0), spot(1.0, next(1.0)), spot(next(1.0), 1.0)].into_iter().flatten());
            let polygon = Polygon::new(corners).unwrap();
            let (centre, shape) = (polygon.centre(), Shape::Polygon(polygon));
            let ranges = shape.score_ranges(centre);
            for _ in 0..20 {
                let Some(place) = spot(next(1.0), next(1.0)).map(|place| Place::of_score(place.score())) else {
                    continue;
                };
                if shape.distance_within(&Centre::new(centre), place).is_some() {
                    let score = place.score();
                    let covering = ranges.iter().filter(|range| !range.is_above(score) && range.reaches(score)).count();
                    assert_eq!(covering, 1, "{centre:?} {shape:?} {place:?}");
                }
            }
        }
    }
}

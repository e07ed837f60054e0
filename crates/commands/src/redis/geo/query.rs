//! What GEOSEARCH, GEORADIUS and their kin ask for, and the members that fit.

use super::read::place_of;
use super::unit::{parse_place, parse_unit};
use crate::redis::combination::FIRST_LOOKS;
use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};
use tenon_engine::args::Args;
use tenon_engine::double::parse_double;
use tenon_engine::ds::packed::Item;
use tenon_engine::ds::progress;
use tenon_engine::errors::{CmdError, shown};
use tenon_engine::store::types::ZsetRef;
use tenon_engine::store::types::geo::{Centre, Place, Polygon, Shape};
use tenon_engine::store::types::zset::Direction;
use tenon_engine::wire::resp::number::parse_i64;

/// The commands by the arguments that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// GEORADIUS: place, radius and unit stand first.
    RadiusOfPlace(Destination),
    /// GEORADIUSBYMEMBER: member, radius and unit stand first.
    RadiusOfMember(Destination),
    /// GEOSEARCH.
    Search,
    /// GEOSEARCHSTORE: the destination stands first.
    SearchStore,
}

/// Whether the older commands take a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// STORE and STOREDIST name it.
    Allowed,
    /// The `_RO` forms.
    None,
}

impl Form {
    /// The argument that is the key with the members.
    pub(super) fn source(self) -> usize {
        if self == Form::SearchStore { 2 } else { 1 }
    }

    /// Where the options begin.
    fn options(self) -> usize {
        match self {
            Form::RadiusOfPlace(_) => 6,
            Form::RadiusOfMember(_) => 5,
            Form::Search => 2,
            Form::SearchStore => 3,
        }
    }

    fn is_search(self) -> bool {
        matches!(self, Form::Search | Form::SearchStore)
    }
}

/// What the destination's scores are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The places.
    Places,
    /// The distances, in the unit of the command.
    Distances,
}

/// What is replied beside members.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Details {
    pub(super) distance: bool,
    pub(super) score: bool,
    pub(super) place: bool,
}

impl Details {
    pub(super) fn count(self) -> usize {
        usize::from(self.distance) + usize::from(self.score) + usize::from(self.place)
    }
}

/// In which order members are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    NearestFirst,
    FarthestFirst,
}

/// A query. Where its key is not there, it has no centre, as it would find nothing.
#[derive(Clone, Debug)]
pub(super) struct Query {
    centre: Option<Place>,
    /// In metres.
    shape: Option<Shape>,
    /// Metres in the unit of the command.
    pub(super) unit: f64,
    order: Option<Order>,
    count: Option<usize>,
    /// Whether any members will do, not only the nearest: ANY.
    any: bool,
    pub(super) details: Details,
    /// The argument that is the destination, and what is kept there.
    pub(super) store: Option<(usize, Stored)>,
}

const NO_MEMBER: CmdError = CmdError::text("ERR could not decode requested zset member");

/// A length in its unit's number, and the unit in metres.
fn parse_radius(radius: &[u8], unit: &[u8]) -> Result<(f64, f64), CmdError> {
    let radius = parse_double(radius).ok_or(CmdError::text("ERR need numeric radius"))?;
    if radius < 0.0 {
        return Err(CmdError::text("ERR radius cannot be negative"));
    }
    Ok((radius, parse_unit(unit)?))
}

fn parse_box(width: &[u8], height: &[u8], unit: &[u8]) -> Result<(f64, f64, f64), CmdError> {
    let width = parse_double(width).ok_or(CmdError::text("ERR need numeric width"))?;
    let height = parse_double(height).ok_or(CmdError::text("ERR need numeric height"))?;
    if width < 0.0 || height < 0.0 {
        return Err(CmdError::text("ERR height or width cannot be negative"));
    }
    Ok((width, height, parse_unit(unit)?))
}

/// The polygon whose number of corners is argument `at`, and how many arguments it takes with that.
fn parse_polygon(args: &Args<'_>, at: usize) -> Result<(Polygon, usize), CmdError> {
    let count = parse_i64(args.get(at)).and_then(|count| i32::try_from(count).ok());
    let count = count.ok_or(CmdError::text("ERR invalid number of vertices"))?;
    let first = at + 1;
    let taken = usize::try_from(count).ok().filter(|count| *count <= (args.len() - first) / 2).unwrap_or(0) * 2;
    let corners: Result<Vec<Place>, CmdError> =
        (first..first + taken).step_by(2).map(|index| parse_place(args.get(index), args.get(index + 1))).collect();
    let polygon = Polygon::new(corners?);
    let polygon = polygon.ok_or(CmdError::text("ERR GEOSEARCH BYPOLYGON must have at least 3 vertices"))?;
    Ok((polygon, 1 + taken))
}

impl Query {
    /// Reads a command's arguments; the key with the members has been looked up, as Redis does before.
    pub(super) fn parse(args: &Args<'_>, form: Form, zset: Option<ZsetRef<'_>>) -> Result<Query, CmdError> {
        let mut query = Query {
            centre: None,
            shape: None,
            unit: 1.0,
            order: None,
            count: None,
            any: false,
            details: Details::default(),
            store: (form == Form::SearchStore).then_some((1, Stored::Places)),
        };
        match form {
            Form::RadiusOfPlace(_) => {
                query.centre = Some(parse_place(args.get(2), args.get(3))?);
                query.set_circle(args.get(4), args.get(5))?;
            }
            Form::RadiusOfMember(_) => {
                // Without the key Redis looks at the options only.
                if let Some(zset) = zset {
                    query.centre = Some(place_of(zset, args.get(2)).ok_or(NO_MEMBER)?);
                    query.set_circle(args.get(3), args.get(4))?;
                }
            }
            Form::Search | Form::SearchStore => {}
        }
        query.parse_options(args, form, zset)?;
        Ok(query)
    }

    fn set_circle(&mut self, radius: &[u8], unit: &[u8]) -> Result<(), CmdError> {
        let (radius, unit) = parse_radius(radius, unit)?;
        self.unit = unit;
        self.shape = Some(Shape::Circle { radius: radius * unit });
        Ok(())
    }

    fn parse_options(&mut self, args: &Args<'_>, form: Form, zset: Option<ZsetRef<'_>>) -> Result<(), CmdError> {
        let may_store =
            matches!(form, Form::RadiusOfPlace(Destination::Allowed) | Form::RadiusOfMember(Destination::Allowed));
        let (mut from_member, mut from_place, mut by_radius, mut by_box) = (false, false, false, false);
        let mut by_polygon = false;
        let mut at = form.options();
        while at < args.len() {
            let behind = args.len() - at - 1;
            let search = form.is_search();
            match () {
                () if args.is(at, "WITHDIST") => self.details.distance = true,
                () if args.is(at, "WITHHASH") => self.details.score = true,
                () if args.is(at, "WITHCOORD") => self.details.place = true,
                () if args.is(at, "ANY") => self.any = true,
                () if args.is(at, "ASC") => self.order = Some(Order::NearestFirst),
                () if args.is(at, "DESC") => self.order = Some(Order::FarthestFirst),
                () if behind >= 1 && args.is(at, "COUNT") => {
                    let count = parse_i64(args.get(at + 1)).ok_or(CmdError::NotInteger)?;
                    let count = usize::try_from(count).ok().filter(|&count| count > 0);
                    self.count = Some(count.ok_or(CmdError::text("ERR COUNT must be > 0"))?);
                    at += 1;
                }
                () if may_store && behind >= 1 && (args.is(at, "STORE") || args.is(at, "STOREDIST")) => {
                    let stored = if args.is(at, "STORE") { Stored::Places } else { Stored::Distances };
                    self.store = Some((at + 1, stored));
                    at += 1;
                }
                () if search && !from_place && !by_polygon && behind >= 1 && args.is(at, "FROMMEMBER") => {
                    if let Some(zset) = zset {
                        self.centre = Some(place_of(zset, args.get(at + 1)).ok_or(NO_MEMBER)?);
                    }
                    from_member = true;
                    at += 1;
                }
                () if search && !from_member && !by_polygon && behind >= 2 && args.is(at, "FROMLONLAT") => {
                    self.centre = Some(parse_place(args.get(at + 1), args.get(at + 2))?);
                    from_place = true;
                    at += 2;
                }
                () if search && !by_box && !by_polygon && behind >= 2 && args.is(at, "BYRADIUS") => {
                    self.set_circle(args.get(at + 1), args.get(at + 2))?;
                    by_radius = true;
                    at += 2;
                }
                () if search && !by_radius && !by_polygon && behind >= 3 && args.is(at, "BYBOX") => {
                    let (width, height, unit) = parse_box(args.get(at + 1), args.get(at + 2), args.get(at + 3))?;
                    self.unit = unit;
                    self.shape = Some(Shape::Box { width: width * unit, height: height * unit });
                    by_box = true;
                    at += 3;
                }
                // A polygon has a centre of its own.
                () if search
                    && !(by_radius || by_box || from_member || from_place)
                    && behind >= 2
                    && args.is(at, "BYPOLYGON") =>
                {
                    let (polygon, taken) = parse_polygon(args, at + 1)?;
                    self.centre = Some(polygon.centre());
                    self.unit = 1.0;
                    self.shape = Some(Shape::Polygon(polygon));
                    by_polygon = true;
                    at += taken;
                }
                () if form == Form::SearchStore && args.is(at, "STOREDIST") => {
                    self.store = Some((1, Stored::Distances));
                }
                () => return Err(CmdError::Syntax),
            }
            at += 1;
        }
        self.check(args, form, from_member || from_place || by_polygon, by_radius || by_box || by_polygon)
    }

    /// Refuses what makes no sense together.
    fn check(&self, args: &Args<'_>, form: Form, has_centre: bool, has_shape: bool) -> Result<(), CmdError> {
        if self.store.is_some() && self.details.count() > 0 {
            let what = if form == Form::SearchStore { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            return Err(CmdError::new(format!(
                "ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options"
            )));
        }
        let name = || shown(args.get(0));
        if form.is_search() && !has_centre {
            return Err(CmdError::new(format!(
                "ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for {}",
                name()
            )));
        }
        if form.is_search() && !has_shape {
            return Err(CmdError::new(format!(
                "ERR exactly one of BYRADIUS and BYBOX can be specified for {}",
                name()
            )));
        }
        if self.any && self.count.is_none() {
            return Err(CmdError::text("ERR the ANY argument requires COUNT argument"));
        }
        Ok(())
    }
}

/// A member that fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    pub(super) member: Item<'a>,
    pub(super) score: f64,
    pub(super) place: Place,
    /// From the centre, in metres.
    pub(super) distance: f64,
}

/// Members that are being found, in lots: one list would be copied at once each time that it grows.
#[derive(Default)]
struct Gathered<'a> {
    full: Vec<Vec<Found<'a>>>,
    last: Vec<Found<'a>>,
}

impl<'a> Gathered<'a> {
    /// Members of a lot.
    const LOT: usize = 4_096;

    fn len(&self) -> usize {
        self.full.len() * Gathered::LOT + self.last.len()
    }

    fn push(&mut self, found: Found<'a>) {
        if self.last.len() == Gathered::LOT {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(Gathered::LOT)));
        }
        self.last.push(found);
    }

    /// All in the order in which they were found.
    fn into_one(self) -> Vec<Found<'a>> {
        if self.full.is_empty() {
            return self.last;
        }
        let mut all = Vec::with_capacity(self.len());
        let in_order = self.full.into_iter().chain([self.last]).flatten();
        all.extend(in_order.inspect(|_| progress::count(1)));
        all
    }
}

impl Query {
    /// Where the members lie that may fit.
    pub(super) fn places(&self, zset: ZsetRef<'_>) -> Vec<Range<usize>> {
        let (Some(centre), Some(shape)) = (self.centre, &self.shape) else { return Vec::new() };
        shape.score_ranges(centre).into_iter().map(|range| zset.ranks_by_score(range)).collect()
    }

    /// The first of these places, if as many members as are wanted, of which any will do, are found at the first few.
    pub(super) fn first_of(&self, zset: ZsetRef<'_>, places: Vec<Range<usize>>) -> Vec<Range<usize>> {
        let looks = FIRST_LOOKS / self.member_steps();
        let Some(wanted) = self.count.filter(|&count| self.any && count <= looks) else { return places };
        let mut left = looks;
        let first = |ranks: &Range<usize>| {
            let taken = ranks.len().min(left);
            left -= taken;
            ranks.start..ranks.start + taken
        };
        let first: Vec<_> = places.iter().map(first).collect();
        let are_enough = left == 0 && self.find(zset, first.clone()).len() >= wanted;
        if are_enough { first } else { places }
    }

    /// How much work the members at these places are at the most, in members of a circle.
    pub(super) fn steps(&self, places: &[Range<usize>]) -> usize {
        let members: usize = places.iter().map(ExactSizeIterator::len).sum();
        members.saturating_mul(self.member_steps())
    }

    /// How much work a member is, in members of a circle.
    fn member_steps(&self) -> usize {
        /// Corners of a polygon that are looked at in the time of a member.
        const CORNERS_A_MEMBER: usize = 8;
        1 + self.corners() / CORNERS_A_MEMBER
    }

    fn corners(&self) -> usize {
        if let Some(Shape::Polygon(polygon)) = &self.shape { polygon.corners() } else { 0 }
    }

    /// The members that fit, as many as are wanted, of those at [`Query::places`].
    pub(super) fn find<'a>(&self, zset: ZsetRef<'a>, places: Vec<Range<usize>>) -> Vec<Found<'a>> {
        /// Members that are looked at before it is asked whether there are enough.
        const STEPS: RangeInclusive<usize> = 8..=64;
        /// Corners of a polygon that are looked at in the time of a step of progress.
        const CORNERS_A_STEP: usize = 64;
        let (Some(centre), Some(shape)) = (self.centre, &self.shape) else { return Vec::new() };
        let enough = if self.any { self.count.unwrap_or(usize::MAX) } else { usize::MAX };
        let step = enough.clamp(*STEPS.start(), *STEPS.end());
        let centre = Centre::new(centre);
        let further_steps = self.corners() / CORNERS_A_STEP;
        let mut gathered = Gathered::default();
        for ranks in places {
            for start in ranks.clone().step_by(step) {
                if gathered.len() >= enough {
                    break;
                }
                zset.for_each_in(start..ranks.end.min(start + step), Direction::Ascending, |member, score| {
                    progress::count(further_steps);
                    let place = Place::of_score(score);
                    if let Some(distance) = shape.distance_within(&centre, place) {
                        gathered.push(Found { member, score, place, distance });
                    }
                });
            }
        }
        let mut found = gathered.into_one();
        found.truncate(enough);
        let nearest = |one: &Found<'_>, other: &Found<'_>| {
            progress::count(1);
            one.distance.partial_cmp(&other.distance).unwrap_or(Ordering::Equal)
        };
        // Some of many are the nearest, unless any will do.
        let order = self.order.or((self.count.is_some() && !self.any).then_some(Order::NearestFirst));
        match order {
            Some(Order::NearestFirst) => found.sort_by(nearest),
            Some(Order::FarthestFirst) => found.sort_by(|one, other| nearest(other, one)),
            None => {}
        }
        found.truncate(self.count.unwrap_or(usize::MAX));
        found
    }
}

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
        // As many digits as are not zero, 17 at most.
        let text = format!("{degrees:.17}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        match reply.proto() {
            Proto::Resp2 => reply.bulk(text.as_bytes()),
            Proto::Resp3 => reply.raw(format!(",{text}\r\n").as_bytes()),
        }
    }
}

//! A database's number among a command's arguments. Knows no command.

use tenon_engine::Engine;
use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::number::parse_i64;

/// The database that an argument names.
///
/// # Errors
/// When it is no number, no 32-bit number, or none of a database: each has its own text in Redis.
pub fn parse_database(engine: &Engine, text: &[u8]) -> Result<usize, CmdError> {
    let number = parse_i64(text).ok_or(CmdError::NotInteger)?;
    let number = i32::try_from(number).map_err(|_| {
        CmdError::new(format!("ERR value is out of range, value must between {} and {}", i32::MIN, i32::MAX))
    })?;
    in_range(engine, number)
}

/// The database of this number.
///
/// # Errors
/// When there are not so many.
pub fn in_range(engine: &Engine, number: i32) -> Result<usize, CmdError> {
    let number = u32::try_from(number).map_err(|_| CmdError::DbIndex)?;
    if number < engine.config.databases() { Ok(number as usize) } else { Err(CmdError::DbIndex) }
}

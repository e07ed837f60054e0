//! The `struct` library: values to bytes and back by a format, as Roberto Ierusalimschy's 0.2 does with Redis's limits.

use crate::arguments::{double, integer_or, string};
use crate::interpreter::{State, function};
use crate::raise::{bad_argument, failure};
use mlua::{Lua, LuaString, MultiValue, Table, Value};
use std::rc::Rc;

const INTEGER_SIZE_MAX: usize = 32;
const ALIGN_DEFAULT: usize = 8;
/// More results than this a function cannot give.
const RESULTS_MAX: usize = 7_990;

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", function(lua, state, pack)?)?;
    table.raw_set("unpack", function(lua, state, unpack)?)?;
    table.raw_set("size", function(lua, state, size)?)?;
    Ok(table)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Endian {
    Big,
    Little,
}

/// A format that is being read, up to its first NUL.
struct Format<'a> {
    lua: &'a Lua,
    text: &'a [u8],
    endian: Endian,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(lua: &'a Lua, text: &'a [u8]) -> Format<'a> {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
        Format { lua, text, endian, align: 1 }
    }

    /// The next option with its size and the bytes that align it at `at`.
    fn next(&mut self, at: usize) -> mlua::Result<Option<(u8, usize, usize)>> {
        let Some((&option, rest)) = self.text.split_first() else { return Ok(None) };
        self.text = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > INTEGER_SIZE_MAX {
                    let text = format!("integral size {size} is larger than limit of {INTEGER_SIZE_MAX}");
                    return Err(failure(self.lua, text));
                }
                size
            }
            _ => 0,
        };
        let aligned = if size == 0 || option == b'c' { 0 } else { size.min(self.align) };
        // The mask is right for powers of two only; with others the original does the same.
        let padding = if aligned == 0 { 0 } else { aligned.wrapping_sub(at & (aligned - 1)) & (aligned - 1) };
        Ok(Some((option, size, padding)))
    }

    fn number(&mut self, absent: usize) -> mlua::Result<usize> {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(absent);
        }
        let (number, rest) = self.text.split_at(digits);
        self.text = rest;
        let number = std::str::from_utf8(number).expect("digits are ASCII").parse::<i32>();
        number.map(|number| number as usize).map_err(|_| failure(self.lua, "integral size overflow"))
    }

    /// An option that is no value.
    fn control(&mut self, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.endian = Endian::Big,
            b'<' => self.endian = Endian::Little,
            b'!' => {
                let align = self.number(ALIGN_DEFAULT)?;
                if !align.is_power_of_two() {
                    return Err(failure(self.lua, format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            _ => {
                let mut text = b"invalid format option '".to_vec();
                text.extend_from_slice(&[option, b'\'']);
                return Err(bad_argument(self.lua, 1, &String::from_utf8_lossy(&text)));
            }
        }
        Ok(())
    }
}

fn pack(lua: &Lua, state: &State, args: MultiValue) -> mlua::Result<LuaString> {
    let text = string(lua, &args, 1)?;
    let text = text.as_bytes();
    // The original has a nil behind the arguments, which its errors show.
    let args: MultiValue = args.iter().cloned().chain([Value::Nil]).collect();
    let mut format = Format::new(lua, &text);
    let mut out = Vec::new();
    let mut number = 2;
    while let Some((option, size, padding)) = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = double(lua, &args, number)?;
                number += 1;
                let value = if value < 0.0 { crate::arguments::truncate(value) as u64 } else { value as u64 };
                let from = out.len();
                out.extend((0..size).map(|at| if at < 8 { (value >> (8 * at)) as u8 } else { 0 }));
                if format.endian == Endian::Big {
                    out[from..].reverse();
                }
            }
            b'x' => out.push(0),
            b'f' => {
                let value = double(lua, &args, number)? as f32;
                number += 1;
                match format.endian {
                    Endian::Big => out.extend_from_slice(&value.to_be_bytes()),
                    Endian::Little => out.extend_from_slice(&value.to_le_bytes()),
                }
            }
            b'd' => {
                let value = double(lua, &args, number)?;
                number += 1;
                match format.endian {
                    Endian::Big => out.extend_from_slice(&value.to_be_bytes()),
                    Endian::Little => out.extend_from_slice(&value.to_le_bytes()),
                }
            }
            b'c' | b's' => {
                let value = string(lua, &args, number)?;
                number += 1;
                let value = value.as_bytes();
                let size = if size == 0 { value.len() } else { size };
                if value.len() < size {
                    return Err(bad_argument(lua, number, "string too short"));
                }
                if !state.has_room(lua, out.len() + size) {
                    return Err(crate::raise::Raised::Text(b"not enough memory".to_vec()).into());
                }
                out.extend_from_slice(&value[..size]);
                if option == b's' {
                    out.push(0);
                }
            }
            _ => format.control(option)?,
        }
    }
    lua.create_string(out)
}

fn unpack(lua: &Lua, _: &State, args: MultiValue) -> mlua::Result<MultiValue> {
    let text = string(lua, &args, 1)?;
    let text = text.as_bytes();
    let data = string(lua, &args, 2)?;
    let data = data.as_bytes();
    let from = integer_or(lua, &args, 3, 1)?;
    // A negative position is a huge one to the original, which then finds the data too short.
    let Some(mut at) = (from as u64).checked_sub(1).map(|at| at as usize) else {
        return Err(bad_argument(lua, 3, "offset must be 1 or greater"));
    };
    let too_short = || bad_argument(lua, 2, "data string too short");
    let mut format = Format::new(lua, &text);
    let mut results: Vec<Value> = Vec::new();
    while let Some((option, mut size, padding)) = format.next(at)? {
        at = at.checked_add(padding).ok_or_else(too_short)?;
        if size > data.len() || at > data.len() - size {
            return Err(too_short());
        }
        if results.len() >= RESULTS_MAX {
            return Err(failure(lua, "stack overflow (too many results)"));
        }
        let bytes = &data[at..at + size];
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                results.push(Value::Number(integer_of(bytes, format.endian, option.is_ascii_lowercase())));
            }
            b'x' => {}
            b'f' => {
                let four: [u8; 4] = bytes.try_into().expect("it has four bytes");
                let value =
                    if format.endian == Endian::Big { f32::from_be_bytes(four) } else { f32::from_le_bytes(four) };
                results.push(Value::Number(value.into()));
            }
            b'd' => {
                let eight: [u8; 8] = bytes.try_into().expect("it has eight bytes");
                let value =
                    if format.endian == Endian::Big { f64::from_be_bytes(eight) } else { f64::from_le_bytes(eight) };
                results.push(Value::Number(value));
            }
            b'c' => {
                if size == 0 {
                    let said = match results.pop() {
                        Some(value) => lua.coerce_number(value)?,
                        None => None,
                    };
                    let Some(said) = said else {
                        return Err(failure(lua, "format 'c0' needs a previous size"));
                    };
                    // Negative sizes are huge ones to the original.
                    size = usize::try_from(crate::arguments::truncate(said)).unwrap_or(usize::MAX);
                    if size > data.len() || at > data.len() - size {
                        return Err(too_short());
                    }
                }
                results.push(Value::String(lua.create_string(&data[at..at + size])?));
            }
            b's' => {
                let Some(len) = data[at..].iter().position(|byte| *byte == 0) else {
                    return Err(failure(lua, "unfinished string in data"));
                };
                results.push(Value::String(lua.create_string(&data[at..at + len])?));
                size = len + 1;
            }
            _ => format.control(option)?,
        }
        at += size;
    }
    results.push(Value::Number((at + 1) as f64));
    Ok(results.into_iter().collect())
}

fn integer_of(bytes: &[u8], endian: Endian, signed: bool) -> f64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = match endian {
        Endian::Big => bytes.iter().fold(0, fold),
        Endian::Little => bytes.iter().rev().fold(0, fold),
    };
    if !signed {
        return value as f64;
    }
    let mask = u64::MAX.wrapping_shl((bytes.len() as u32 * 8).wrapping_sub(1));
    (if value & mask != 0 { value | mask } else { value }) as i64 as f64
}

fn size(lua: &Lua, _: &State, args: MultiValue) -> mlua::Result<f64> {
    let text = string(lua, &args, 1)?;
    let text = text.as_bytes();
    let mut format = Format::new(lua, &text);
    let mut at = 0;
    while let Some((option, size, padding)) = format.next(at)? {
        at += padding;
        match option {
            b's' => return Err(bad_argument(lua, 1, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(bad_argument(lua, 1, "option 'c0' has no fixed size")),
            _ if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        at += size;
    }
    Ok(at as f64)
}

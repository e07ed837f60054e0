//! The `struct` library: values to bytes and back by a format, as Roberto Ierusalimschy's 0.2 does with Redis's limits.

use crate::arguments::truncate;
use crate::interpreter::State;
use crate::raw::stack::{Body, Fault, Stack, register};
use mlua::{Lua, Table};
use std::rc::Rc;

const INTEGER_SIZE_MAX: usize = 32;
const ALIGN_DEFAULT: usize = 8;
/// More results than this a function cannot give.
const RESULTS_MAX: usize = 7_990;

const FUNCTIONS: [(&str, Body); 3] = [("pack", pack), ("unpack", unpack), ("size", size)];

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    register(lua, state, &state.json, &table, &FUNCTIONS)?;
    Ok(table)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Endian {
    Big,
    Little,
}

/// A format that is being read, up to its first NUL.
struct Format<'a> {
    text: &'a [u8],
    endian: Endian,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Format<'a> {
        let text = memchr::memchr(0, text).map_or(text, |end| &text[..end]);
        let endian = if cfg!(target_endian = "big") { Endian::Big } else { Endian::Little };
        Format { text, endian, align: 1 }
    }

    /// The next option with its size and the bytes that align it at `at`.
    fn next(&mut self, at: usize) -> Result<Option<(u8, usize, usize)>, Fault> {
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
                    return Err(Fault::failed(text));
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

    fn number(&mut self, absent: usize) -> Result<usize, Fault> {
        let digits = self.text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(absent);
        }
        let (number, rest) = self.text.split_at(digits);
        self.text = rest;
        let number = std::str::from_utf8(number).expect("digits are ASCII").parse::<i32>();
        number.map(|number| number as usize).map_err(|_| Fault::failed("integral size overflow"))
    }

    /// An option that is no value.
    fn control(&mut self, option: u8) -> Result<(), Fault> {
        match option {
            b' ' => {}
            b'>' => self.endian = Endian::Big,
            b'<' => self.endian = Endian::Little,
            b'!' => {
                let align = self.number(ALIGN_DEFAULT)?;
                if !align.is_power_of_two() {
                    return Err(Fault::failed(format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            _ => {
                let mut text = b"invalid format option '".to_vec();
                text.extend_from_slice(&[option, b'\'']);
                return Err(Fault::Argument(1, text.into()));
            }
        }
        Ok(())
    }
}

fn pack(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    let mut format = Format::new(stack.text(1)?);
    // The original has a nil behind the arguments, which its errors show.
    stack.push_nil()?;
    let mut out = stack.buffer();
    let mut number = 2;
    while let Some((option, size, padding)) = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = stack.number(number)?;
                number += 1;
                let value = unsigned(value);
                let from = out.len();
                out.extend_from_slice(&value.to_le_bytes()[..size.min(8)]);
                out.resize(from + size, 0);
                if format.endian == Endian::Big {
                    out[from..].reverse();
                }
            }
            b'x' => out.push(0),
            b'f' => {
                let value = stack.number(number)? as f32;
                number += 1;
                match format.endian {
                    Endian::Big => out.extend_from_slice(&value.to_be_bytes()),
                    Endian::Little => out.extend_from_slice(&value.to_le_bytes()),
                }
            }
            b'd' => {
                let value = stack.number(number)?;
                number += 1;
                match format.endian {
                    Endian::Big => out.extend_from_slice(&value.to_be_bytes()),
                    Endian::Little => out.extend_from_slice(&value.to_le_bytes()),
                }
            }
            b'c' | b's' => {
                let value = stack.text(number)?;
                number += 1;
                let size = if size == 0 { value.len() } else { size };
                if value.len() < size {
                    return Err(Fault::argument(number, "string too short"));
                }
                stack.need(out.len() + size)?;
                out.extend_from_slice(&value[..size]);
                if option == b's' {
                    out.push(0);
                }
            }
            _ => format.control(option)?,
        }
    }
    stack.push_buffer(out)?;
    Ok(1)
}

fn unpack(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    let mut format = Format::new(stack.text(1)?);
    let data = stack.text(2)?;
    let from = stack.integer_or(3, 1)?;
    // A negative position is a huge one to the original, which then finds the data too short.
    let Some(mut at) = (from as u64).checked_sub(1).map(|at| at as usize) else {
        return Err(Fault::argument(3, "offset must be 1 or greater"));
    };
    let too_short = || Fault::argument(2, "data string too short");
    while let Some((option, mut size, padding)) = format.next(at)? {
        at = at.checked_add(padding).ok_or_else(too_short)?;
        if size > data.len() || at > data.len() - size {
            return Err(too_short());
        }
        if stack.top() - stack.args() >= RESULTS_MAX {
            return Err(Fault::failed("stack overflow (too many results)"));
        }
        let bytes = &data[at..at + size];
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                stack.push_number(integer_of(bytes, format.endian, option.is_ascii_lowercase()))?;
            }
            b'x' => {}
            b'f' => {
                let four: [u8; 4] = bytes.try_into().expect("it has four bytes");
                let value =
                    if format.endian == Endian::Big { f32::from_be_bytes(four) } else { f32::from_le_bytes(four) };
                stack.push_number(value.into())?;
            }
            b'd' => {
                let eight: [u8; 8] = bytes.try_into().expect("it has eight bytes");
                let value =
                    if format.endian == Endian::Big { f64::from_be_bytes(eight) } else { f64::from_le_bytes(eight) };
                stack.push_number(value)?;
            }
            b'c' => {
                if size == 0 {
                    let has_result = stack.top() > stack.args();
                    let said = if has_result { stack.as_number(stack.top()) } else { None };
                    let Some(said) = said else {
                        return Err(Fault::failed("format 'c0' needs a previous size"));
                    };
                    stack.pop(1);
                    // Negative sizes are huge ones to the original.
                    size = usize::try_from(truncate(said)).unwrap_or(usize::MAX);
                    if size > data.len() || at > data.len() - size {
                        return Err(too_short());
                    }
                }
                stack.push_string(&data[at..at + size])?;
            }
            b's' => {
                let Some(len) = memchr::memchr(0, &data[at..]) else {
                    return Err(Fault::failed("unfinished string in data"));
                };
                stack.push_string(&data[at..at + len])?;
                size = len + 1;
            }
            _ => format.control(option)?,
        }
        at += size;
    }
    stack.push_number((at + 1) as f64)?;
    Ok(stack.top() - stack.args())
}

/// What C makes of a number as 64 bits.
fn unsigned(value: f64) -> u64 {
    const FIRST_UNSIGNED: f64 = 9_223_372_036_854_775_808.0;
    match value {
        _ if value.is_nan() || value < FIRST_UNSIGNED => truncate(value) as u64,
        _ if value < 2.0 * FIRST_UNSIGNED => value as u64,
        _ => 0,
    }
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

fn size(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    let mut format = Format::new(stack.text(1)?);
    let mut at = 0;
    while let Some((option, size, padding)) = format.next(at)? {
        at += padding;
        match option {
            b's' => return Err(Fault::argument(1, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(Fault::argument(1, "option 'c0' has no fixed size")),
            _ if !option.is_ascii_alphanumeric() => format.control(option)?,
            _ => {}
        }
        at += size;
    }
    stack.push_number(at as f64)?;
    Ok(1)
}

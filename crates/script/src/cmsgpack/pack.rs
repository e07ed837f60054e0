//! Lua values to MessagePack.

use crate::raw::stack::{Fault, Kind, Place, Stack};

/// Tables deeper than this are written as nil, so that circles end.
const NESTING_MAX: usize = 16;

/// `cmsgpack.pack`: all arguments, one behind the other.
pub(super) fn pack(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    if stack.args() == 0 {
        return Err(Fault::argument(0, "MessagePack pack needs input."));
    }
    let mut out = stack.buffer();
    for number in 1..=stack.args() {
        write(stack, &mut out, number, 0)?;
    }
    stack.push_buffer(out)?;
    Ok(1)
}

fn write(stack: &mut Stack<'_>, out: &mut Vec<u8>, at: Place, level: usize) -> Result<(), Fault> {
    stack.worked_little(out.len())?;
    match stack.kind(at) {
        Kind::String => {
            let len = stack.string(at).map_or(0, <[u8]>::len);
            stack.worked(out.len() + len)?;
            write_string(out, stack.string(at).unwrap_or_default());
        }
        Kind::Boolean(truth) => out.push(if truth { 0xC3 } else { 0xC2 }),
        Kind::Number(number) => write_number(out, number),
        Kind::Table if level < NESTING_MAX => write_table(stack, out, at, level)?,
        _ => out.push(0xC0),
    }
    Ok(())
}

fn write_string(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ 0..32 => out.push(0xA0 | len as u8),
        len @ 32..=0xFF => out.extend_from_slice(&[0xD9, len as u8]),
        len => write_length(out, [0xDA, 0xDB], len),
    }
    out.extend_from_slice(text);
}

/// A length in two or four bytes.
fn write_length(out: &mut Vec<u8>, tags: [u8; 2], len: usize) {
    match u16::try_from(len) {
        Ok(len) => {
            out.push(tags[0]);
            out.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            out.push(tags[1]);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn write_number(out: &mut Vec<u8>, number: f64) {
    let whole = crate::arguments::truncate(number);
    if whole as f64 == number && !number.is_infinite() {
        return write_integer(out, whole);
    }
    let short = number as f32;
    if f64::from(short) == number {
        out.push(0xCA);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xCB);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn write_integer(out: &mut Vec<u8>, number: i64) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match number {
        -32..=127 => out.push(number as u8),
        128..=0xFF => tagged(0xCC, &[number as u8]),
        0x100..=0xFFFF => tagged(0xCD, &(number as u16).to_be_bytes()),
        0x1_0000..=0xFFFF_FFFF => tagged(0xCE, &(number as u32).to_be_bytes()),
        0x1_0000_0000.. => tagged(0xCF, &number.to_be_bytes()),
        -128..-32 => tagged(0xD0, &[number as u8]),
        -0x8000..-128 => tagged(0xD1, &(number as i16).to_be_bytes()),
        -0x8000_0000..-0x8000 => tagged(0xD2, &(number as i32).to_be_bytes()),
        _ => tagged(0xD3, &number.to_be_bytes()),
    }
}

fn write_table(stack: &mut Stack<'_>, out: &mut Vec<u8>, table: Place, level: usize) -> Result<(), Fault> {
    // Tables that hold each other many times over would else go on without bound.
    stack.worked(out.len())?;
    if is_array(stack, out.len(), table)? {
        let len = stack.len(table);
        match len {
            0..=15 => out.push(0x90 | len as u8),
            _ => write_length(out, [0xDC, 0xDD], len),
        }
        for index in 1..=len {
            // The original asks the metatable too: not that it would make a difference where no element lacks.
            stack.push_element(table, index)?;
            write(stack, out, stack.top(), level + 1)?;
            stack.pop(1);
        }
        return Ok(());
    }
    let mut pairs = 0;
    stack.walk(table, |stack, _| {
        stack.worked_little(out.len())?;
        pairs += 1;
        Ok(true)
    })?;
    match pairs {
        0..=15 => out.push(0x80 | pairs as u8),
        _ => write_length(out, [0xDE, 0xDF], pairs),
    }
    stack.walk(table, |stack, key| {
        write(stack, out, key, level + 1)?;
        write(stack, out, key + 1, level + 1)?;
        Ok(true)
    })?;
    Ok(())
}

/// Whether the keys are 1 to their number; so many `bytes` are written.
fn is_array(stack: &mut Stack<'_>, bytes: usize, table: Place) -> Result<bool, Fault> {
    let (mut count, mut most) = (0, 0);
    let all_are = stack.walk(table, |stack, key| {
        stack.worked_little(bytes)?;
        let index = match stack.kind(key) {
            Kind::Number(index) if f64::from(index as i32) == index => index as i64,
            _ => return Ok(false),
        };
        most = most.max(index);
        count += 1;
        Ok(index > 0)
    })?;
    Ok(all_are && most == count)
}

//! The `bit` library: operations on 32 bits, as LuaBitOp 1.0.2 has them.

use crate::interpreter::State;
use crate::raw::numbers::{self, Body};
use crate::raw::stack::{self, Fault, Stack};
use mlua::{Lua, Table};
use std::rc::Rc;

const FUNCTIONS: [(&str, Body); 11] = [
    ("tobit", |stack| unary(stack, |a| a)),
    ("bnot", |stack| unary(stack, |a| !a)),
    ("bswap", |stack| unary(stack, u32::swap_bytes)),
    ("band", |stack| fold(stack, |a, b| a & b)),
    ("bor", |stack| fold(stack, |a, b| a | b)),
    ("bxor", |stack| fold(stack, |a, b| a ^ b)),
    ("lshift", |stack| shift(stack, |a, by| a << by)),
    ("rshift", |stack| shift(stack, |a, by| a >> by)),
    ("arshift", |stack| shift(stack, |a, by| ((a as i32) >> by) as u32)),
    ("rol", |stack| shift(stack, u32::rotate_left)),
    ("ror", |stack| shift(stack, u32::rotate_right)),
];

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    numbers::register(lua, state, &state.json, &table, &FUNCTIONS)?;
    stack::register(lua, state, &state.json, &table, &[("tohex", tohex)])?;
    Ok(table)
}

/// A number's 32 bits: it is rounded to the nearest integer and taken modulo 2^32.
fn bits(stack: &Stack<'_>, number: usize) -> Result<u32, Fault> {
    // The sum lies where doubles are the integers, and its lowest bits are the number's (LuaBitOp's own trick).
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    Ok((stack.number(number)? + SHIFT).to_bits() as u32)
}

fn number(bits: u32) -> f64 {
    f64::from(bits as i32)
}

fn unary(stack: &Stack<'_>, operation: fn(u32) -> u32) -> Result<f64, Fault> {
    bits(stack, 1).map(|value| number(operation(value)))
}

fn fold(stack: &Stack<'_>, operation: fn(u32, u32) -> u32) -> Result<f64, Fault> {
    let mut all = bits(stack, 1)?;
    // From the last one on, as the original does, which its errors show.
    for place in (2..=stack.args()).rev() {
        all = operation(all, bits(stack, place)?);
    }
    Ok(number(all))
}

fn shift(stack: &Stack<'_>, operation: fn(u32, u32) -> u32) -> Result<f64, Fault> {
    let (value, by) = (bits(stack, 1)?, bits(stack, 2)?);
    Ok(number(operation(value, by & 31)))
}

fn tohex(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    let value = bits(stack, 1)?;
    let digits = if stack.args() < 2 { 8 } else { bits(stack, 2)? as i32 };
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    stack.push_string(&text.as_bytes()[8 - digits.unsigned_abs().min(8) as usize..])?;
    Ok(1)
}

//! The `bit` library: operations on 32 bits, as LuaBitOp 1.0.2 has them.

use crate::arguments::double;
use crate::interpreter::{State, function};
use mlua::{Lua, MultiValue, Table};
use std::rc::Rc;

/// An operation on one number, and on two.
type Unary = fn(u32) -> u32;
type Binary = fn(u32, u32) -> u32;

/// The table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let unary: [(&str, Unary); 3] = [("tobit", |a| a), ("bnot", |a| !a), ("bswap", u32::swap_bytes)];
    for (name, operation) in unary {
        let call = move |lua: &Lua, _: &State, args: MultiValue| result(operation(bits(lua, &args, 1)?));
        table.raw_set(name, function(lua, state, call)?)?;
    }
    let folding: [(&str, Binary); 3] = [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];
    for (name, operation) in folding {
        let call = move |lua: &Lua, _: &State, args: MultiValue| {
            let mut all = bits(lua, &args, 1)?;
            for number in 2..=args.len() {
                all = operation(all, bits(lua, &args, number)?);
            }
            result(all)
        };
        table.raw_set(name, function(lua, state, call)?)?;
    }
    let shifting: [(&str, Binary); 5] = [
        ("lshift", |a, by| a << by),
        ("rshift", |a, by| a >> by),
        ("arshift", |a, by| ((a as i32) >> by) as u32),
        ("rol", u32::rotate_left),
        ("ror", u32::rotate_right),
    ];
    for (name, operation) in shifting {
        let call = move |lua: &Lua, _: &State, args: MultiValue| {
            let (value, by) = (bits(lua, &args, 1)?, bits(lua, &args, 2)?);
            result(operation(value, by & 31))
        };
        table.raw_set(name, function(lua, state, call)?)?;
    }
    table.raw_set("tohex", function(lua, state, tohex)?)?;
    Ok(table)
}

/// A number's 32 bits: it is rounded to the nearest integer and taken modulo 2^32.
fn bits(lua: &Lua, args: &MultiValue, number: usize) -> mlua::Result<u32> {
    // The sum lies where doubles are the integers, and its lowest bits are the number's (LuaBitOp's own trick).
    const SHIFT: f64 = 6_755_399_441_055_744.0;
    Ok((double(lua, args, number)? + SHIFT).to_bits() as u32)
}

fn result(bits: u32) -> mlua::Result<f64> {
    Ok(f64::from(bits as i32))
}

fn tohex(lua: &Lua, _: &State, args: MultiValue) -> mlua::Result<String> {
    let value = bits(lua, &args, 1)?;
    let digits = if args.len() < 2 { 8 } else { bits(lua, &args, 2)? as i32 };
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    Ok(text[8 - digits.unsigned_abs().min(8) as usize..].to_owned())
}

//! Lua values to JSON.

use super::settings::{Invalid, Values};
use crate::number::write_g;
use crate::raw::stack::{Fault, Kind, Place, Stack};

/// Tables in tables, whatever `encode_max_depth` says: where the original's stack of Lua ends too, near enough.
const NESTING_MAX: usize = 1_000;

/// Bytes of a string that are written between two looks at the time and the memory.
const PIECE: usize = 16 * 1024;
/// Bytes that take as long as one value does.
const BYTES_A_VALUE: usize = 16;

/// `cjson.encode`.
pub(super) fn encode(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    if stack.args() != 1 {
        return Err(Fault::argument(1, "expected 1 argument"));
    }
    let mut encoder = Encoder { values: stack.settings().get(), out: stack.buffer() };
    encoder.value(stack, 1, 0)?;
    stack.push_buffer(encoder.out)?;
    Ok(1)
}

struct Encoder {
    values: Values,
    out: Vec<u8>,
}

fn refuse(kind: Kind, why: &str) -> Fault {
    Fault::failed(format!("Cannot serialise {}: {why}", kind.name()))
}

impl Encoder {
    fn value(&mut self, stack: &mut Stack<'_>, at: Place, depth: usize) -> Result<(), Fault> {
        stack.worked_little(self.out.len())?;
        match stack.kind(at) {
            Kind::String => self.string(stack, at)?,
            Kind::Number(number) => self.number(number)?,
            Kind::Boolean(truth) => self.out.extend_from_slice(if truth { b"true" } else { b"false" }),
            Kind::Table => self.table(stack, at, depth + 1)?,
            Kind::Nil | Kind::Null => self.out.extend_from_slice(b"null"),
            kind => return Err(refuse(kind, "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64) -> Result<(), Fault> {
        if !number.is_finite() {
            match self.values.encode_invalid {
                Invalid::Refused => return Err(refuse(Kind::Number(number), "must not be NaN or Inf")),
                Invalid::Written if number.is_nan() => self.out.extend_from_slice(b"nan"),
                Invalid::Written => write_g(&mut self.out, number, self.values.encode_precision),
                Invalid::Null => self.out.extend_from_slice(b"null"),
            }
            return Ok(());
        }
        write_g(&mut self.out, number, self.values.encode_precision);
        Ok(())
    }

    fn string(&mut self, stack: &mut Stack<'_>, at: Place) -> Result<(), Fault> {
        let len = stack.string(at).map_or(0, <[u8]>::len);
        stack.worked(self.out.len() + len)?;
        self.out.reserve(len.min(PIECE) + 2);
        self.out.push(b'"');
        let mut done = 0;
        while len - done > PIECE {
            self.escape(&stack.string(at).unwrap_or_default()[done..][..PIECE]);
            done += PIECE;
            stack.worked_long(self.out.len(), PIECE / BYTES_A_VALUE)?;
        }
        self.escape(&stack.string(at).unwrap_or_default()[done..]);
        self.out.push(b'"');
        Ok(())
    }

    fn escape(&mut self, text: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut rest = text;
        while let Some(plain) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'/' | 0..0x20 | 0x7F)) {
            self.out.extend_from_slice(&rest[..plain]);
            match rest[plain] {
                byte @ (b'"' | b'\\' | b'/') => self.out.extend_from_slice(&[b'\\', byte]),
                0x08 => self.out.extend_from_slice(b"\\b"),
                0x09 => self.out.extend_from_slice(b"\\t"),
                0x0A => self.out.extend_from_slice(b"\\n"),
                0x0C => self.out.extend_from_slice(b"\\f"),
                0x0D => self.out.extend_from_slice(b"\\r"),
                byte => {
                    let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
                    self.out.extend_from_slice(b"\\u00");
                    self.out.extend_from_slice(&digits);
                }
            }
            rest = &rest[plain + 1..];
        }
        self.out.extend_from_slice(rest);
    }

    fn table(&mut self, stack: &mut Stack<'_>, table: Place, depth: usize) -> Result<(), Fault> {
        // Tables that hold each other many times over would else go on without bound.
        stack.worked(self.out.len())?;
        if depth > self.values.encode_depth_max.min(NESTING_MAX) {
            return Err(Fault::failed(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_len(stack, table)? {
            Some(len) if len > 0 => {
                self.out.push(b'[');
                for index in 1..=len {
                    if index > 1 {
                        self.out.push(b',');
                    }
                    stack.push_element(table, index)?;
                    self.value(stack, stack.top(), depth)?;
                    stack.pop(1);
                }
                self.out.push(b']');
            }
            _ => self.object(stack, table, depth)?,
        }
        Ok(())
    }

    fn object(&mut self, stack: &mut Stack<'_>, table: Place, depth: usize) -> Result<(), Fault> {
        self.out.push(b'{');
        let mut is_first = true;
        stack.walk(table, |stack, key| {
            if !std::mem::take(&mut is_first) {
                self.out.push(b',');
            }
            match stack.kind(key) {
                Kind::String => self.string(stack, key)?,
                Kind::Number(number) => {
                    self.out.push(b'"');
                    self.number(number)?;
                    self.out.push(b'"');
                }
                kind => return Err(refuse(kind, "table key must be a number or string")),
            }
            self.out.push(b':');
            self.value(stack, key + 1, depth)?;
            Ok(true)
        })?;
        self.out.push(b'}');
        Ok(())
    }

    /// The largest index when all keys are indexes, and not too many between them lack; else nothing.
    fn array_len(&self, stack: &mut Stack<'_>, table: Place) -> Result<Option<usize>, Fault> {
        let (mut items, mut most) = (0_i64, 0_i64);
        let all_are = stack.walk(table, |stack, key| {
            stack.worked_little(self.out.len())?;
            let index = match stack.kind(key) {
                Kind::Number(index) if index >= 1.0 && index.floor() == index => index,
                _ => return Ok(false),
            };
            if index > most as f64 {
                // cjson counts in an `int`, which a number from 2^31 on makes the least there is.
                most = if index <= f64::from(i32::MAX) { index as i64 } else { i64::from(i32::MIN) };
            }
            items += 1;
            Ok(true)
        })?;
        if !all_are || most < 0 {
            return Ok(None);
        }
        let values = self.values;
        let is_sparse =
            values.sparse_ratio > 0 && most > items.saturating_mul(values.sparse_ratio) && most > values.sparse_safe;
        if !is_sparse {
            return Ok(Some(most as usize));
        }
        if values.sparse_convert {
            return Ok(None);
        }
        Err(refuse(Kind::Table, "excessively sparse array"))
    }
}

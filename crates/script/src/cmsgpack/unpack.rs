//! MessagePack to Lua values.

use crate::raw::stack::{Fault, Stack};

/// Containers in containers; the original goes on to the end of Lua's stack, and the recursion here has to end before
/// the machine's does.
const NESTING_MAX: usize = 1_000;
/// More results than this a function cannot give.
const RESULTS_MAX: usize = 7_990;

/// `cmsgpack.unpack`.
pub(super) fn unpack(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    unpack_full(stack, 0, 0)
}

/// `cmsgpack.unpack_one`.
pub(super) fn unpack_one(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    let offset = stack.integer_or(2, 0)?;
    unpack_full(stack, 1, offset)
}

/// `cmsgpack.unpack_limit`.
pub(super) fn unpack_limit(stack: &mut Stack<'_>) -> Result<usize, Fault> {
    let limit = stack.integer(2)?;
    let offset = stack.integer_or(3, 0)?;
    unpack_full(stack, limit, offset)
}

fn unpack_full(stack: &mut Stack<'_>, limit: i64, offset: i64) -> Result<usize, Fault> {
    let all = limit == 0 && offset == 0;
    let text = stack.text(1)?;
    let len = text.len();
    if offset < 0 || limit < 0 {
        // The second number is the length, in the original too.
        let text = format!("Invalid request to unpack with offset of {} and limit of {}.", offset as i32, len as i32);
        return Err(Fault::failed(text));
    }
    if offset as u64 > len as u64 {
        let text = format!("Start offset {} greater than input length {}.", offset as i32, len as i32);
        return Err(Fault::failed(text));
    }
    let most = if all { i64::from(i32::MAX) } else { limit };
    let mut input = Input { stack, left: &text[offset as usize..] };
    let mut count = 0;
    while !input.left.is_empty() && (count as i64) < most {
        if count >= RESULTS_MAX {
            let text = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
            return Err(Fault::failed(text));
        }
        input.value(0).map_err(|bad| match bad {
            Bad::Short => Fault::failed("Missing bytes in input."),
            Bad::Format => Fault::failed("Bad data format in input."),
            Bad::Fault(fault) => fault,
        })?;
        count += 1;
    }
    if !all {
        let left = input.left.len();
        let next = if left == 0 { -1.0 } else { (len - left) as f64 };
        stack.push_number(next)?;
        stack.insert(stack.args() + 1);
        count += 1;
    }
    Ok(count)
}

/// Why there is no value.
enum Bad {
    Short,
    Format,
    Fault(Fault),
}

impl From<Fault> for Bad {
    fn from(fault: Fault) -> Bad {
        Bad::Fault(fault)
    }
}

struct Input<'a, 'b> {
    stack: &'b mut Stack<'a>,
    left: &'a [u8],
}

impl<'a> Input<'a, '_> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (bytes, left) = self.left.split_at_checked(len).ok_or(Bad::Short)?;
        self.left = left;
        Ok(bytes)
    }

    fn fixed<const LEN: usize>(&mut self) -> Result<[u8; LEN], Bad> {
        Ok(self.bytes(LEN)?.try_into().expect("so many were taken"))
    }

    /// A length in so many bytes.
    fn length(&mut self, bytes: usize) -> Result<usize, Bad> {
        Ok(self.bytes(bytes)?.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
    }

    /// Pushes the value that comes.
    fn value(&mut self, level: usize) -> Result<(), Bad> {
        self.stack.worked(0)?;
        let [tag] = self.fixed()?;
        let number = match tag {
            0x00..=0x7F => f64::from(tag),
            0x80..=0x8F => return self.map(usize::from(tag & 0xF), level),
            0x90..=0x9F => return self.array(usize::from(tag & 0xF), level),
            0xA0..=0xBF => return self.text(usize::from(tag & 0x1F)),
            0xC0 => return Ok(self.stack.push_nil()?),
            0xC2 => return Ok(self.stack.push_boolean(false)?),
            0xC3 => return Ok(self.stack.push_boolean(true)?),
            0xCA => f32::from_be_bytes(self.fixed()?).into(),
            0xCB => f64::from_be_bytes(self.fixed()?),
            0xCC => u8::from_be_bytes(self.fixed()?).into(),
            0xCD => u16::from_be_bytes(self.fixed()?).into(),
            0xCE => u32::from_be_bytes(self.fixed()?).into(),
            // Signed, in the original too.
            0xCF => i64::from_be_bytes(self.fixed()?) as f64,
            0xD0 => i8::from_be_bytes(self.fixed()?).into(),
            0xD1 => i16::from_be_bytes(self.fixed()?).into(),
            0xD2 => i32::from_be_bytes(self.fixed()?).into(),
            0xD3 => i64::from_be_bytes(self.fixed()?) as f64,
            0xD9 => return self.sized_text(1),
            0xDA => return self.sized_text(2),
            0xDB => return self.sized_text(4),
            0xDC | 0xDD => {
                let len = self.length(if tag == 0xDC { 2 } else { 4 })?;
                return self.array(len, level);
            }
            0xDE | 0xDF => {
                let len = self.length(if tag == 0xDE { 2 } else { 4 })?;
                return self.map(len, level);
            }
            0xE0..=0xFF => f64::from(tag as i8),
            _ => return Err(Bad::Format),
        };
        Ok(self.stack.push_number(number)?)
    }

    fn sized_text(&mut self, bytes: usize) -> Result<(), Bad> {
        let len = self.length(bytes)?;
        self.text(len)
    }

    fn text(&mut self, len: usize) -> Result<(), Bad> {
        let text = self.bytes(len)?;
        Ok(self.stack.push_string(text)?)
    }

    /// What is said of a length is not believed: a table grows as its elements come.
    fn array(&mut self, len: usize, level: usize) -> Result<(), Bad> {
        if level >= NESTING_MAX {
            return Err(Fault::failed("stack overflow (in function mp_decode_to_lua_array)").into());
        }
        self.stack.push_table(0)?;
        for index in 1..=len {
            self.value(level + 1)?;
            self.stack.set_element(index)?;
        }
        Ok(())
    }

    fn map(&mut self, len: usize, level: usize) -> Result<(), Bad> {
        if level >= NESTING_MAX {
            return Err(Fault::failed("stack overflow (in function mp_decode_to_lua_hash)").into());
        }
        self.stack.push_table(len)?;
        for _ in 0..len {
            self.value(level + 1)?;
            self.value(level + 1)?;
            self.stack.set_field()?;
        }
        Ok(())
    }
}

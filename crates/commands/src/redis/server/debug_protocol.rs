//! DEBUG PROTOCOL: a value of each type that replies have, for the tests of client libraries; the values are Redis's.

use tenon_engine::errors::CmdError;
use tenon_engine::wire::resp::{Proto, Reply};

/// Writes the value of a type.
///
/// # Errors
/// When there is no such type.
pub fn reply_type(name: &[u8], reply: &mut Reply<'_>) -> Result<(), CmdError> {
    match name.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.int(12345),
        #[expect(clippy::approx_constant, reason = "the value is Redis's, whatever it comes close to")]
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.int(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.int(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.int(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.int(90);
            }
            // An attribute is about a reply, so there has to be one.
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" => {
            if reply.proto() == Proto::Resp2 {
                return Err(CmdError::text("ERR RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.int(42);
            // A push answers nothing, so a client that skips it still waits for its reply.
            reply.bulk(b"Some real reply following the push reply");
        }
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"verbatim" => reply.verbatim(b"txt", b"This is a verbatim\nstring"),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        _ => {
            return Err(CmdError::text(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

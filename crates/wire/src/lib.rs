//! Bytes to frames and back: RESP2, RESP3, inline and memcached text.

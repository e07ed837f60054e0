//! One client's bytes in, bytes out, no sockets.

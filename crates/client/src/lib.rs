//! A small synchronous client for RESP and memcached servers.

//! The verbs of memcached's protocols, which meet Redis's commands at the key context only.

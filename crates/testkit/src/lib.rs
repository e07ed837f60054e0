//! Transcripts and oracles for Tenon's tests.

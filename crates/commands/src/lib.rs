//! The commands of Tenon, declared once, above their handlers.

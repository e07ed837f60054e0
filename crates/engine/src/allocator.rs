//! What the commands need of the process's allocator. Knows none.

/// The process's general allocator.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// As INFO's `mem_allocator` names it.
    pub name: &'static str,
    /// Gives back to the kernel what is free.
    pub release: fn(),
}

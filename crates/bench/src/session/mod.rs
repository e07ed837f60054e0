//! What every experiment works with: options, servers, loads with the server's cost beside them, results. Knows no
//! experiment.

mod grid;
mod interrupt;
mod key_value;
mod measured;
mod options;
mod phases;
mod progress;
mod running;
mod setup;
mod unmeasured;

pub use grid::{Ended, Session, in_turn};
pub use interrupt::Interrupt;
pub use key_value::Shape;
pub use measured::{Measured, Reading};
pub use options::Options;
pub use progress::Progress;
pub use running::{Contender, Named, Running};

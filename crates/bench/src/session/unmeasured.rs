//! Why nothing was measured, for who has asked for something. Knows no experiment.

use super::options::Options;
use crate::target::Protocol;

/// So many cases are named to who has asked for none that is there.
const NAMED_MAX: usize = 5;

/// What is known of what was not measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Unmeasured {
    /// What the experiment has to be given.
    pub(super) lacks: Option<String>,
    /// Why cases that were asked for could not be measured.
    pub(super) cannot: Option<String>,
    /// Whether servers that the bench starts were asked for.
    pub(super) needs_started: bool,
    /// Whether any others were taken, too.
    pub(super) takes_any: bool,
    /// Cases that a server has and nobody asked for, each once: the first of them, and how many there are.
    passed_over: Vec<String>,
}

impl Unmeasured {
    pub(super) fn pass_over(&mut self, case: String) {
        if !self.passed_over.contains(&case) {
            self.passed_over.push(case);
        }
    }

    /// The reason, of servers of which the bench has started some or none and that are measured in these languages.
    pub(super) fn why(&self, options: &Options, are_started: bool, spoken: &[Protocol]) -> String {
        let names =
            |protocols: &[Protocol]| protocols.iter().map(|protocol| protocol.name()).collect::<Vec<_>>().join(" or ");
        if let Some(what) = &self.lacks {
            return what.clone();
        }
        if let Some(why) = self.cannot.as_ref().filter(|_| !self.passed_over.is_empty()) {
            return format!("of what --filter asks for nothing can be: {why}");
        }
        if !self.passed_over.is_empty() {
            let named = self.passed_over.iter().take(NAMED_MAX).map(|case| format!("'{case}'"));
            let others = match self.passed_over.len().saturating_sub(NAMED_MAX) {
                0 => String::new(),
                others => format!(" and {others} others"),
            };
            let named = named.collect::<Vec<_>>().join(", ");
            return format!(
                "no case has '{}' in its name, which --filter asks for: there are {named}{others}",
                options.filter
            );
        }
        if spoken.is_empty() {
            return format!(
                "no server that takes part speaks {}, which --protocols asks for",
                names(&options.protocols)
            );
        }
        if self.needs_started && !self.takes_any && !are_started {
            return "this experiment needs servers that the bench starts itself: name some with --peers".to_owned();
        }
        format!("this experiment has no case for the servers that take part, in {}", names(spoken))
    }
}

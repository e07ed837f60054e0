//! How a signal ends the process, in words of SHUTDOWN. It knows no signal.

use super::error::ValueError;
use super::value::inner_words;

/// How a signal ends the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndWords {
    /// It saves, whether there are save points or not.
    pub save: bool,
    /// It does not save.
    pub nosave: bool,
    /// It ends also when the data cannot be saved.
    pub force: bool,
}

impl EndWords {
    /// The word for none of the others, and those in Redis's order. `now` has it wait for no replicas, of which there are
    /// none.
    const NAMES: [&'static str; 5] = ["default", "save", "nosave", "now", "force"];

    /// What a text says that was read before.
    pub(super) fn of(text: &str) -> EndWords {
        let has = |name: &str| text.split(' ').any(|word| word == name);
        EndWords { save: has("save"), nosave: has("nosave"), force: has("force") }
    }

    /// The text that `words` come to.
    pub(super) fn parse(words: &[String]) -> Result<String, ValueError> {
        let [default, options @ ..] = Self::NAMES;
        let mut chosen = [false; Self::NAMES.len() - 1];
        let mut is_empty = true;
        for word in inner_words(words) {
            is_empty = false;
            match options.iter().position(|name| name.eq_ignore_ascii_case(word)) {
                Some(index) => chosen[index] = true,
                None if word.eq_ignore_ascii_case(default) => {}
                None => return Err(ValueError::NotOneOf(&Self::NAMES)),
            }
        }
        if is_empty {
            return Err(ValueError::NotOneOf(&Self::NAMES));
        }
        let named = options.iter().zip(chosen).filter_map(|(name, is_chosen)| is_chosen.then_some(*name));
        let text = named.collect::<Vec<_>>().join(" ");
        match Self::of(&text) {
            EndWords { save: true, nosave: true, .. } => Err(ValueError::SaveAndNoSave),
            _ if text.is_empty() => Ok(default.to_owned()),
            _ => Ok(text),
        }
    }
}

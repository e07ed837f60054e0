//! Which build of a server was measured. Knows not how that is found out.

use serde::{Deserialize, Serialize};

/// A build of a server: two of one version need not be the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Build {
    /// What the program says of itself when it is asked for its version; of a server that runs already, what that says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// SHA-256 of the program's file, or of a script and the programs that it names; empty if it cannot be read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// How many bytes these are.
    pub bytes: u64,
    /// When the file was last changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub changed: String,
}

impl Build {
    /// Whether anything is known of it.
    pub fn is_known(&self) -> bool {
        !self.says.is_empty() || !self.sha256.is_empty()
    }

    /// Whether both are the same: a file that was only copied is.
    pub fn is(&self, other: &Build) -> bool {
        self.says == other.says && self.sha256 == other.sha256
    }

    /// In a few words, to tell it from others of one version.
    pub fn short(&self) -> String {
        if !self.sha256.is_empty() {
            return format!("build {}", &self.sha256[..self.sha256.len().min(12)]);
        }
        if self.says.is_empty() { "unknown build".to_owned() } else { format!("build '{}'", self.says) }
    }

    /// All that is known.
    pub fn whole(&self) -> String {
        let file = (!self.sha256.is_empty())
            .then(|| format!("{} bytes changed at {}, SHA-256 {}", self.bytes, self.changed, self.sha256));
        let says = (!self.says.is_empty()).then(|| format!("says '{}'", self.says));
        let parts: Vec<String> = says.into_iter().chain(file).collect();
        if parts.is_empty() { "unknown build".to_owned() } else { parts.join("; ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_told_apart_by_what_they_are_and_not_by_when_they_were_copied() {
        let build = |says: &str, sha256: &str, changed: &str| Build {
            says: says.to_owned(),
            sha256: sha256.to_owned(),
            bytes: 5,
            changed: changed.to_owned(),
        };
        let one = build("v=7 build=a", "0123456789abcdef", "today");
        assert!(one.is(&build("v=7 build=a", "0123456789abcdef", "yesterday")));
        assert!(!one.is(&build("v=7 build=b", "0123456789abcdef", "today")));
        assert!(!one.is(&build("v=7 build=a", "0", "today")) && !one.is(&Build::default()));
        assert_eq!((one.short(), Build::default().short()), ("build 0123456789ab".into(), "unknown build".into()));
        assert_eq!(build("v=7", "", "").short(), "build 'v=7'");
        let whole = one.whole();
        assert_eq!(whole, "says 'v=7 build=a'; 5 bytes changed at today, SHA-256 0123456789abcdef");
        assert_eq!(serde_json::from_str::<Build>("{}").unwrap(), Build::default());
    }
}

//! What a memcached verb is to the documents and the tests. The decoder knows its arguments, the front end runs it.

/// A verb of the text protocol, declared once above its handler.
#[derive(Debug)]
pub struct TextCommand {
    /// As clients write it: in lower case.
    pub name: &'static str,
    /// Where the documents list it; the folder of its transcript.
    pub family: &'static str,
    /// The line behind the verb, in the notation of memcached's `doc/protocol.txt`. A data block follows where it
    /// names its length in bytes.
    pub syntax: &'static str,
    /// One sentence.
    pub summary: &'static str,
}

#[cfg(test)]
mod tests {
    use super::super::VERBS;

    #[test]
    fn no_verb_is_listed_twice() {
        let mut names: Vec<_> = VERBS.iter().map(|verb| verb.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), VERBS.len());
    }
}

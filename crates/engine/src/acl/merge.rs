//! Putting a selector's words together that were given as several arguments. Knows no rule.

/// Rules with each selector as one word; the index of an opening parenthesis if none closes it.
pub(super) fn merge_selectors(words: &[&[u8]]) -> Result<Vec<Vec<u8>>, usize> {
    let mut merged: Vec<Vec<u8>> = Vec::with_capacity(words.len());
    let mut open: Option<(usize, Vec<u8>)> = None;
    for (index, word) in words.iter().enumerate() {
        match &mut open {
            // Within another selector, too, which is forgotten then, as Redis has it.
            _ if word.starts_with(b"(") && !word.ends_with(b")") => open = Some((index, word.to_vec())),
            Some((_, selector)) => {
                selector.push(b' ');
                selector.extend_from_slice(word);
                if word.ends_with(b")") {
                    merged.extend(open.take().map(|(_, selector)| selector));
                }
            }
            None => merged.push(word.to_vec()),
        }
    }
    match open {
        Some((index, _)) => Err(index),
        None => Ok(merged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_become_one_word() {
        let merge = |text: &str| {
            let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
            let merged = merge_selectors(&words)?;
            Ok::<_, usize>(merged.into_iter().map(|word| String::from_utf8(word).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(merge("on (+get ~a) off"), Ok(vec!["on".into(), "(+get ~a)".into(), "off".into()]));
        assert_eq!(merge("(+get) ( )"), Ok(vec!["(+get)".into(), "( )".into()]));
        assert_eq!(merge("on (+get ~a"), Err(1));
        assert_eq!(merge("a) ("), Err(1));
        assert_eq!(merge("(a (b c)"), Ok(vec!["(b c)".into()]));
        assert_eq!(merge("(a ( b"), Err(1));
    }
}

//! Bytes as hex.

/// Decodes pairs of hex digits; white space between them is skipped.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<char> = text.chars().filter(|character| !character.is_whitespace()).collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(format!("hex needs an even number of digits, digits=`{}`", digits.len()));
    }
    pairs.iter().map(|pair| byte(*pair)).collect()
}

fn byte(pair: [char; 2]) -> Result<u8, String> {
    let value = pair.iter().try_fold(0, |value, digit| Some(value * 16 + digit.to_digit(16)?));
    let byte = value.and_then(|value| u8::try_from(value).ok());
    byte.ok_or_else(|| format!("hex digits are 0 to f, digits=`{}{}`", pair[0], pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_pairs_and_names_what_is_none() {
        assert_eq!(decode("00 ff\n7F"), Ok(vec![0, 255, 127]));
        for (text, part) in [("0", "digits=`1`"), ("0g", "digits=`0g`"), ("éa", "éa")] {
            let refused = decode(text).is_err_and(|error| error.contains(part));
            assert!(refused, "{text}");
        }
    }
}

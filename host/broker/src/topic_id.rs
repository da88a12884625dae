//! Topic ids in Kafka's text form: 16 bytes as 22 characters of URL-safe base64 without padding.

use uuid::Uuid;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Characters of an id: 128 bits in sixes, the last one carrying two.
const CHARACTERS: usize = 22;

/// The id in Kafka's text form.
#[must_use]
pub fn format(id: Uuid) -> String {
    // 22 characters hold 132 bits: the number moves up by the four that are not used.
    let number = id.as_u128();
    let mut text = String::with_capacity(CHARACTERS);
    for index in 0..CHARACTERS {
        let six = if index + 1 == CHARACTERS {
            (number & 0b11) << 4
        } else {
            (number >> (122 - 6 * index)) & 0b11_1111
        };
        let letter = usize::try_from(six).ok().and_then(|at| ALPHABET.get(at)).copied().unwrap_or(b'A');
        text.push(char::from(letter));
    }
    text
}

/// The id that the text stands for; `None` for anything that [`format()`] would not write.
#[must_use]
pub fn parse(text: &str) -> Option<Uuid> {
    if text.len() != CHARACTERS {
        return None;
    }
    let mut number: u128 = 0;
    for (index, letter) in text.bytes().enumerate() {
        let six = u128::try_from(ALPHABET.iter().position(|known| *known == letter)?).ok()?;
        if index + 1 == CHARACTERS {
            if six & 0b1111 != 0 {
                return None;
            }
            number = (number << 2) | (six >> 4);
        } else {
            number = (number << 6) | six;
        }
    }
    Some(Uuid::from_u128(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_kafka_writes_them() {
        assert_eq!(format(Uuid::nil()), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(format(Uuid::from_u128(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(format(Uuid::from_u128(u128::MAX)), "_____________________w");
        let id = Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        assert_eq!(format(id), "AQIDBAUGBwgJCgsMDQ4PEA");
    }

    #[test]
    fn every_written_id_is_read_and_nothing_else() {
        for seed in 0..200_u128 {
            let id = Uuid::from_u128(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            assert_eq!(parse(&format(id)), Some(id));
        }
        for bad in [
            "",
            "AAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAAA",
            "AAAAAAAAAAAAAAAAAAAAAB",
            "AAAAAAAAAAAAAAAAAAAA+A",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}

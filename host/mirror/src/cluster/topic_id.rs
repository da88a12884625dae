//! Topic ids as Kafka writes them.

use uuid::Uuid;

/// 22 characters of URL-safe base64 without padding.
pub(crate) fn id_text(id: Uuid) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // 22 characters hold 132 bits; the last one carries two.
    let number = id.as_u128();
    let six = |place: u32| {
        if place < 21 { number >> (122 - 6 * place) } else { number << 4 }
    };
    let letter = |place| {
        let index = usize::try_from(six(place) & 0b11_1111).ok();
        index.and_then(|index| ALPHABET.get(index)).copied().map_or('A', char::from)
    };
    (0..22).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_kafka_writes_them() {
        assert_eq!(id_text(Uuid::nil()), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(id_text(Uuid::from_u128(1)), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(id_text(Uuid::from_u128(u128::MAX)), "_____________________w");
    }
}

//! Reads and writes hellos (OpenFlow 1.3.5, 7.5.1). They are decoded in any version, because they negotiate the
//! version.
use super::{Decoded, Encoded, WireReader, WireWriter};
use crate::model::Hello;
use crate::model::error::HelloFailed;

const VERSION_BITMAP: u16 = 1;

/// Reads a hello. Unknown elements are skipped, as the specification requires. Everything after a malformed element
/// is ignored, because versions before 1.3.1 attach no meaning to a hello's body.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<Hello> {
    let mut hello = Hello::default();
    while let Ok(element) = element(reader) {
        hello.versions = hello.versions.or(element);
    }
    reader.read_rest();
    Ok(hello)
}

/// Reads one element. Returns the version numbers if it is a version bitmap, otherwise `None`.
fn element(reader: &mut WireReader<'_>) -> Decoded<Option<Vec<u8>>> {
    let mut element = reader.take_element("hello element", 2, 4, HelloFailed::Incompatible)?;
    let kind = element.read_u16()?;
    let length = element.read_u16()?;
    // The padding of the last element may be missing.
    let padding = usize::from(length).next_multiple_of(8) - usize::from(length);
    reader.skip(padding.min(reader.left()))?;
    if kind != VERSION_BITMAP {
        return Ok(None);
    }
    let mut versions = Vec::new();
    // The version in the header is one byte, so only 256 bits have a meaning.
    for first in (0..=u8::MAX).step_by(32) {
        let Ok(bitmap) = element.read_u32() else { break };
        versions.extend((0..32).filter(|bit| bitmap & 1 << bit != 0).map(|bit| first + bit));
    }
    Ok(Some(versions))
}

pub(crate) fn encode(hello: &Hello, writer: &mut WireWriter<'_>) -> Encoded {
    let Some(versions) = &hello.versions else { return Ok(()) };
    let words = versions.iter().max().map_or(1, |highest| usize::from(*highest) / 32 + 1);
    let start = writer.at();
    writer.write_u16(VERSION_BITMAP);
    writer.write_u16(0);
    for word in 0..words {
        let here = versions.iter().filter(|version| usize::from(**version) / 32 == word);
        writer.write_u32(here.fold(0, |bitmap, version| bitmap | 1 << (version % 32)));
    }
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::BadRequest;

    fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
        decode(&mut WireReader::new(bytes, "hello", BadRequest::BadLen)).unwrap().versions
    }

    #[test]
    fn bitmaps_are_found_between_other_elements() {
        assert_eq!(decoded(&[]), None);
        assert_eq!(decoded(&[0, 9, 0, 5, 1, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0x12]), Some(vec![1, 4]));
        assert_eq!(decoded(&[0, 1, 0, 12, 0, 0, 0, 2, 0, 0, 0, 1]), Some(vec![1, 32]));
    }

    #[test]
    fn garbage_says_nothing() {
        for bytes in [&[1][..], &[0, 1, 0, 3], &[0, 1, 0, 99, 0, 0, 0, 2], &[0xff; 40]] {
            assert_eq!(decoded(bytes), None, "{bytes:?}");
        }
    }
}

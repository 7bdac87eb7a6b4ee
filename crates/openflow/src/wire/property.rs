//! Reads and writes lists of properties (OpenFlow 1.4.1, 7.2.1): type, length, content, and padding to eight bytes,
//! which the length does not count.
use super::{Decoded, Encoded, WireReader, WireWriter};
use crate::model::error::BadProperty;
use crate::model::property::RawProperty;

/// Reads properties to the end. `read` is called with type and content of each, and must consume the content.
pub(crate) fn each(
    reader: &mut WireReader<'_>,
    mut read: impl FnMut(u16, &mut WireReader<'_>) -> Decoded<()>,
) -> Decoded<()> {
    while !reader.is_empty() {
        let mut property = reader.take_element("property", 2, 4, BadProperty::BadLen)?;
        let length = property.left();
        let kind = property.read_u16()?;
        property.skip(2)?;
        read(kind, &mut property)?;
        property.finish()?;
        let padding = length.next_multiple_of(8) - length;
        reader.take_part(padding, "property padding", BadProperty::BadLen)?;
    }
    Ok(())
}

/// Reads properties without interpreting them.
pub(crate) fn decode_list(reader: &mut WireReader<'_>) -> Decoded<Vec<RawProperty>> {
    let mut list = Vec::new();
    each(reader, |kind, property| {
        list.push(raw(kind, property));
        Ok(())
    })?;
    Ok(list)
}

/// Reads the content of a property without interpreting it.
pub(crate) fn raw(kind: u16, property: &mut WireReader<'_>) -> RawProperty {
    RawProperty { kind, data: property.read_rest() }
}

/// Writes a property of type `kind`; `content` writes its content.
pub(crate) fn write(
    kind: u16,
    writer: &mut WireWriter<'_>,
    content: impl FnOnce(&mut WireWriter<'_>) -> Encoded,
) -> Encoded {
    let start = writer.at();
    writer.write_u16(kind);
    writer.write_u16(0);
    content(writer)?;
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    Ok(())
}

/// Writes a property whose content is a list of 32-bit words.
pub(crate) fn write_words(kind: u16, words: &[u32], writer: &mut WireWriter<'_>) -> Encoded {
    write(kind, writer, |writer| {
        words.iter().for_each(|word| writer.write_u32(*word));
        Ok(())
    })
}

/// Writes uninterpreted properties.
pub(crate) fn encode_list(properties: &[RawProperty], writer: &mut WireWriter<'_>) -> Encoded {
    properties.iter().try_for_each(|property| encode_raw(property, writer))
}

/// Writes an uninterpreted property.
pub(crate) fn encode_raw(property: &RawProperty, writer: &mut WireWriter<'_>) -> Encoded {
    write(property.kind, writer, |writer| {
        writer.write_bytes(&property.data.0);
        Ok(())
    })
}

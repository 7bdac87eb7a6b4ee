//! Reads and writes the asynchronous configuration (OpenFlow 1.4.1, 7.3.8): a property for each kind of message and
//! role.
use crate::model::Version;
use crate::model::role::AsyncConfig;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

/// Returns the number of message kinds that the version has. Each kind has two property types, for slaves and for
/// other roles.
fn n_kinds(version: Version) -> u16 {
    if version >= Version::V15 { 8 } else { 6 }
}

pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<AsyncConfig> {
    let n_kinds = n_kinds(reader.version());
    let (mut config, mut others) = (AsyncConfig::default(), Vec::new());
    property::each(reader, |kind, part| {
        if kind / 2 >= n_kinds {
            others.push(property::raw(kind, part));
            return Ok(());
        }
        let for_slaves = kind.is_multiple_of(2);
        config.kinds_mut()[usize::from(kind / 2)][usize::from(for_slaves)] = Some(part.read_u32()?);
        Ok(())
    })?;
    Ok(AsyncConfig { properties: others, ..config })
}

/// Writes the configuration. Leaves out message kinds that the version lacks.
pub(crate) fn encode(config: &AsyncConfig, writer: &mut WireWriter<'_>) -> Encoded {
    let n_kinds = n_kinds(writer.version());
    for (kind, [ours, slaves]) in (0..n_kinds).zip(config.kinds()) {
        for (kind, reasons) in [(kind * 2, slaves), (kind * 2 + 1, ours)] {
            if let Some(reasons) = reasons {
                property::write_words(kind, &[reasons], writer)?;
            }
        }
    }
    property::encode_list(&config.properties, writer)
}

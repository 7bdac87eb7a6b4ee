//! What 1.3 says in experimenter messages of the Open Networking Foundation's: bundles (extension 230), which are 1.4's.
use crate::model::bundle::{BundleAdd, BundleControl};
use crate::model::{Body, Version};
use crate::nicira;
use crate::v14::bundle;
use crate::wire::{Decoded, Encoded, Reader, Writer};

/// The foundation's number.
pub(crate) const ONF: u32 = 0x4f4e_4600;
const BUNDLE_CONTROL: u32 = 2300;
const BUNDLE_ADD: u32 = 2301;

/// Whether an experimenter message is a bundle's.
pub(crate) fn is_bundle(id: u32, kind: u32) -> bool {
    id == ONF && [BUNDLE_CONTROL, BUNDLE_ADD].contains(&kind)
}

/// An experimenter message: one of these, or any other, which is not looked into. Later versions have messages of their own
/// for bundles; there they stay closed.
pub(crate) fn decode(reader: &mut Reader<'_>) -> Decoded<Body> {
    let head = reader.peek_u32_pair().filter(|_| reader.version() == Version::V13);
    match head {
        Some((ONF, BUNDLE_CONTROL)) => {
            reader.rename("bundle control");
            reader.skip(8)?;
            bundle::decode_control(reader).map(Body::BundleControl)
        }
        Some((ONF, BUNDLE_ADD)) => {
            reader.rename("bundle add-message");
            reader.skip(8)?;
            bundle::decode_add(reader).map(Body::BundleAdd)
        }
        _ => nicira::message::decode(reader, reader.version()),
    }
}

pub(crate) fn encode_control(control: &BundleControl, writer: &mut Writer<'_>) -> Encoded {
    writer.u32(ONF);
    writer.u32(BUNDLE_CONTROL);
    bundle::encode_control(control, writer)
}

pub(crate) fn encode_add(add: &BundleAdd, writer: &mut Writer<'_>) -> Encoded {
    writer.u32(ONF);
    writer.u32(BUNDLE_ADD);
    bundle::encode_add(add, writer)
}

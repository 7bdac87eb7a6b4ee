//! Reads and writes 1.3's extensions by the Open Networking Foundation: bundles (extension 230), in 1.4's layout, and
//! flow monitors (extension 187), in Open vSwitch's layout.
use crate::model::bundle::{BundleAdd, BundleControl};
use crate::model::monitor::{FlowMonitor, FlowUpdate};
use crate::model::multipart::{ReplyBody, RequestBody};
use crate::model::nicira::NxMessage;
use crate::model::{Body, Version};
use crate::nicira::{self, monitor};
use crate::v14::bundle;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, opaque};

/// Experimenter number of the Open Networking Foundation.
pub(crate) const ONF: u32 = 0x4f4e_4600;
const BUNDLE_CONTROL: u32 = 2300;
const BUNDLE_ADD: u32 = 2301;
/// Experimenter type of the flow monitor multipart messages.
const FLOW_MONITOR: u32 = 1870;
const FLOW_MONITOR_CANCEL: u32 = 1870;
const FLOW_MONITOR_PAUSED: u32 = 1871;
const FLOW_MONITOR_RESUMED: u32 = 1872;

/// Returns true if an experimenter message is a bundle message.
pub(crate) fn is_bundle(id: u32, kind: u32) -> bool {
    id == ONF && [BUNDLE_CONTROL, BUNDLE_ADD].contains(&kind)
}

/// Reads an experimenter message. An unknown one stays uninterpreted. In later versions, which have standard bundle
/// messages, bundle messages of the Open Networking Foundation stay uninterpreted, too.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<Body> {
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
        Some((ONF, FLOW_MONITOR_CANCEL)) => {
            reader.rename("flow monitor cancel");
            reader.skip(8)?;
            let id = reader.read_u32()?;
            Ok(Body::Nx(Box::new(NxMessage::FlowMonitorCancel(id))))
        }
        Some((ONF, kind @ (FLOW_MONITOR_PAUSED | FLOW_MONITOR_RESUMED))) => {
            reader.skip(8)?;
            let is_pause = kind == FLOW_MONITOR_PAUSED;
            let message = if is_pause { NxMessage::FlowMonitorPaused } else { NxMessage::FlowMonitorResumed };
            Ok(Body::Nx(Box::new(message)))
        }
        _ => nicira::message::decode(reader, reader.version()),
    }
}

pub(crate) fn encode_control(control: &BundleControl, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(ONF);
    writer.write_u32(BUNDLE_CONTROL);
    bundle::encode_control(control, writer)
}

pub(crate) fn encode_add(add: &BundleAdd, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(ONF);
    writer.write_u32(BUNDLE_ADD);
    bundle::encode_add(add, writer)
}

/// Writes a Nicira message, or the Open Networking Foundation's message that 1.3 has instead.
pub(crate) fn encode_nicira(message: &NxMessage, writer: &mut WireWriter<'_>) -> Encoded {
    let kind = match message {
        NxMessage::FlowMonitorCancel(_) => FLOW_MONITOR_CANCEL,
        NxMessage::FlowMonitorPaused => FLOW_MONITOR_PAUSED,
        NxMessage::FlowMonitorResumed => FLOW_MONITOR_RESUMED,
        other => return nicira::message::encode(other, writer.version(), writer),
    };
    if writer.version() != Version::V13 {
        return Err(writer.cannot("a message about flow monitors, which are in its own messages"));
    }
    writer.write_u32(ONF);
    writer.write_u32(kind);
    if let NxMessage::FlowMonitorCancel(id) = message {
        writer.write_u32(*id);
    }
    Ok(())
}

/// Returns true if an experimenter's multipart message is about flow monitors; its head is then read.
fn is_flow_monitor(reader: &mut WireReader<'_>) -> Decoded<bool> {
    let is_one = reader.version() == Version::V13 && reader.peek_u32_pair() == Some((ONF, FLOW_MONITOR));
    if is_one {
        reader.rename("flow monitor");
        reader.skip(8)?;
    }
    Ok(is_one)
}

/// Reads an experimenter's multipart request. An unknown one stays uninterpreted.
pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<RequestBody> {
    if is_flow_monitor(reader)? {
        return Ok(RequestBody::FlowMonitor(reader.read_list(monitor::decode_request)?));
    }
    Ok(RequestBody::Experimenter(opaque::decode(reader, Version::V13)?))
}

/// Reads an experimenter's multipart reply. An unknown one stays uninterpreted.
pub(crate) fn decode_reply(reader: &mut WireReader<'_>) -> Decoded<ReplyBody> {
    if is_flow_monitor(reader)? {
        return Ok(ReplyBody::FlowMonitor(reader.read_list(monitor::decode_update)?));
    }
    Ok(ReplyBody::Experimenter(opaque::decode(reader, Version::V13)?))
}

pub(crate) fn encode_monitors(monitors: &[FlowMonitor], writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(ONF);
    writer.write_u32(FLOW_MONITOR);
    monitors.iter().try_for_each(|monitor| monitor::encode_request(monitor, writer))
}

pub(crate) fn encode_updates(updates: &[FlowUpdate], writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(ONF);
    writer.write_u32(FLOW_MONITOR);
    updates.iter().try_for_each(|update| monitor::encode_update(update, writer))
}

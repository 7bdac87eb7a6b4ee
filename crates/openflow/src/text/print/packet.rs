//! Prints packet-ins and packet-outs.
use super::{PrintContext, PrintDetail, frame, shape};
use crate::model::{Match, MatchField, PacketIn, PacketOut, TableId};
use crate::text::{action_text, match_text};
use std::fmt::Write as _;
use weir_packet::Field;

pub(super) fn packet_in(message: &PacketIn, show: PrintContext) -> String {
    packet_in_saying(message, "", show)
}

/// Prints a packet-in, with the text `more` before the packet.
pub(super) fn packet_in_saying(message: &PacketIn, more: &str, show: PrintContext) -> String {
    let mut text = String::new();
    if message.table != TableId(0) {
        let _ = write!(text, " table_id={}", message.table.0);
    }
    if message.cookie != u64::MAX {
        let _ = write!(text, " cookie={:#x}", message.cookie);
    }
    let _ =
        write!(text, " total_len={} {}", message.total_len, match_text::write(&shown(&message.matching), show.version));
    let (whole, there) = (usize::from(message.total_len), message.data.0.len());
    let _ = write!(text, " (via {}) data_len={there}", message.reason.name());
    match message.buffer_id {
        None => text.push_str(" (unbuffered)"),
        Some(buffer) => {
            let _ = write!(text, " buffer=0x{:08x}", buffer.0);
        }
    }
    match message.buffer_id {
        None if whole != there => text.push_str(" (***total_len != data_len***)"),
        Some(_) if whole < there => text.push_str(" (***total_len < data_len***)"),
        _ => {}
    }
    text.push_str(more);
    text + &packet(&message.data.0, show)
}

/// Returns the match to print: without the physical port if that equals the input port.
fn shown(matching: &Match) -> Match {
    let in_port = matching.get(Field::InPort);
    let mut fields = matching.fields.clone();
    fields.retain(|entry| match entry {
        MatchField::Known { field: Field::InPhyPort, .. } => matching.get(Field::InPhyPort) != in_port,
        _ => true,
    });
    Match { fields }
}

pub(super) fn packet_out(message: &PacketOut, show: PrintContext) -> String {
    let actions = action_text::write_actions(&message.actions, show.version);
    let head = format!(" in_port={} actions={actions}", message.in_port);
    match message.buffer_id {
        Some(buffer) => format!("{head} buffer=0x{:08x}", buffer.0),
        None => {
            let data = &message.data.0;
            format!("{head} data_len={}{}", data.len(), packet(data, show))
        }
    }
}

fn packet(data: &[u8], show: PrintContext) -> String {
    let mut text = String::new();
    if show.detail >= PrintDetail::Packets && !data.is_empty() {
        let _ = writeln!(text, "\n{}", frame::headers(data));
    }
    if show.detail >= PrintDetail::Bytes {
        text.push_str(&shape::hex_dump(data));
    }
    text
}

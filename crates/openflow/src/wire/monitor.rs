//! Reads and writes what the updates of flow monitors share, those of OpenFlow 1.4 and of the extensions of earlier
//! versions (OpenFlow 1.4.1, 7.3.5.17): all but the layout of a full update.
use super::{Decoded, Encoded, WireReader, WireWriter, flow};
use crate::model::error::{BadRequest, FlowMonitorFailed};
use crate::model::flow::FlowRemovedReason;
use crate::model::monitor::{FlowEvent, FlowUpdate, FlowUpdateFull};

/// Numbers of a monitor's events: those of full updates from 0 on, then the abbreviation, then pause and end of pause.
pub(crate) struct EventNumbers {
    /// Events of full updates, in the order of their numbers.
    pub(crate) full: &'static [FlowEvent],
    /// Number of the abbreviation, which follows those of full updates.
    pub(crate) abbrev: u16,
    /// True if pauses are events. Otherwise they are messages of their own.
    pub(crate) has_pauses: bool,
}

impl EventNumbers {
    const fn paused(&self) -> u16 {
        self.abbrev + 1
    }

    const fn resumed(&self) -> u16 {
        self.abbrev + 2
    }

    /// Reads an update. `full` reads a full one from behind its event.
    pub(crate) fn decode_update(
        &self,
        reader: &mut WireReader<'_>,
        full: impl FnOnce(FlowEvent, &mut WireReader<'_>) -> Decoded<FlowUpdateFull>,
    ) -> Decoded<FlowUpdate> {
        let mut part = reader.take_element("flow update", 0, 8, BadRequest::BadLen)?;
        part.skip(2)?;
        let at = part.at();
        let number = part.read_u16()?;
        let update = match self.full.get(usize::from(number)) {
            Some(event) => FlowUpdate::Full(full(*event, &mut part)?),
            None if number == self.abbrev => FlowUpdate::Abbrev { xid: part.read_u32()? },
            None if self.has_pauses && number <= self.resumed() => {
                part.skip(4)?;
                if number == self.paused() { FlowUpdate::Paused } else { FlowUpdate::Resumed }
            }
            None => {
                let last = if self.has_pauses { self.resumed() } else { self.abbrev };
                let reason = format!("found event {number}, expected 0 to {last}");
                return Err(part.error_at(at, FlowMonitorFailed::Unknown, reason));
            }
        };
        part.finish()?;
        Ok(update)
    }

    /// Writes an update. `encode_full` writes a full one from its event on.
    pub(crate) fn encode_update(
        &self,
        update: &FlowUpdate,
        writer: &mut WireWriter<'_>,
        encode_full: impl FnOnce(&FlowUpdateFull, &mut WireWriter<'_>) -> Encoded,
    ) -> Encoded {
        let start = writer.at();
        writer.write_u16(0);
        match update {
            FlowUpdate::Full(full) => encode_full(full, writer)?,
            FlowUpdate::Abbrev { xid } => {
                writer.write_u16(self.abbrev);
                writer.write_u32(*xid);
            }
            FlowUpdate::Paused | FlowUpdate::Resumed if !self.has_pauses => {
                return Err(writer.cannot("a pause among updates, for which it has a message"));
            }
            FlowUpdate::Paused | FlowUpdate::Resumed => {
                writer.write_u16(if *update == FlowUpdate::Paused { self.paused() } else { self.resumed() });
                writer.write_zeros(4);
            }
        }
        writer.set_length(start, start)
    }
}

/// Reads the reason of a removal. In other events the reason has no meaning.
pub(crate) fn decode_reason(event: FlowEvent, part: &mut WireReader<'_>) -> Decoded<Option<FlowRemovedReason>> {
    if event == FlowEvent::Removed {
        return flow::decode_reason(part, FlowRemovedReason::Eviction).map(Some);
    }
    part.skip(1)?;
    Ok(None)
}

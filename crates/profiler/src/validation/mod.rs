//! Measures random commands and packets to check how well a profile predicts a switch. The same series is run on the
//! switch and on a [`crate::VirtualTimeSwitch`] with the profile; the caller compares the results (Cheng 2015, sections
//! 4.5 and 5.4).
//!
//! Both are measured by the same code: [`commands()`] by packets that show when each command was carried out,
//! [`packets()`] by the delay of each packet.
mod commands;
mod packets;

pub use crate::bench::CommandCompletion;
pub use commands::{CommandSeries, CommandSeriesParams, commands};
pub use packets::{PacketSeries, ReplayedPacket, packets};

use crate::bench::TestBench;
use crate::device::DeviceUnderTest;
use crate::{MeasurementSettings, ProfilerError};
use weir_model::switch::device::SwitchModel;

/// Knowledge about the switch: places of entries and forwarding times. It is used only to limit how often packets are
/// sent.
#[derive(Debug, Clone)]
pub struct KnownSwitchTiming {
    /// Table levels; none if unknown.
    pub tables: Option<SwitchModel>,
    /// Forwarding time of each level, in seconds.
    pub delays_s: Vec<f64>,
}

/// Returns a bench whose switch is empty and whose ports are known.
fn bench<'a>(
    device: &'a mut dyn DeviceUnderTest,
    known: &KnownSwitchTiming,
    settings: MeasurementSettings,
    stop: &'a mut dyn FnMut() -> bool,
) -> Result<TestBench<'a>, ProfilerError> {
    let interfaces = device.interfaces();
    if interfaces < 2 {
        let expected = "two at least: where packets go in and come out";
        return Err(ProfilerError::wrong("interfaces (--data)", interfaces, expected));
    }
    if device.version().is_none() {
        let expected = "its control channel, such as tcp:192.0.2.1:6653: entries are to be added";
        return Err(ProfilerError::wrong("a device for random commands or packets", "none with OpenFlow", expected));
    }
    let mut bench = TestBench::new(device, settings, stop);
    bench.learn_ports(&[])?;
    bench.knows_forwarding(&known.delays_s, None);
    match &known.tables {
        Some(tables) => bench.know(tables.clone())?,
        None => bench.clear()?,
    }
    Ok(bench)
}

//! Measures random commands and packets to check how well a profile predicts a switch. The same series is run on the
//! switch and on a [`crate::VirtualTimeSwitch`] with the profile; the caller compares the results (Cheng 2015, sections
//! 4.5 and 5.4).
//!
//! Both are measured by the same code: [`commands()`] by packets that show when each command was carried out,
//! [`packets()`] by the delay of each packet.
mod commands;
mod packets;

pub use crate::bench::CommandCompletion;
pub(crate) use commands::run_commands;
pub use commands::{CommandSeries, CommandSeriesParams, commands};
pub use packets::{PacketSeries, PacketTimes, ReplayedPacket, packets};

use crate::bench::TestBench;
use crate::device::DeviceUnderTest;
use crate::measurement::SURELY_IDLE;
use crate::{MeasurementSettings, ProfilerError};
use std::time::Duration;
use weir_model::switch::device::SwitchModel;
use weir_profile::Profile;

/// Knowledge about the switch: places of entries and forwarding times. It is used only to limit how often packets are
/// sent.
#[derive(Debug, Clone)]
pub struct KnownSwitchTiming {
    /// Table levels; none if unknown.
    pub tables: Option<SwitchModel>,
    /// Forwarding time of each level, in seconds.
    pub delays_s: Vec<f64>,
    /// Time after which the switch has forgotten earlier packets; each series begins after it.
    pub forgets: Duration,
}

impl KnownSwitchTiming {
    /// Returns what a profile says, with the forwarding time of each level in seconds.
    pub fn of(profile: &Profile, delays_s: Vec<f64>) -> KnownSwitchTiming {
        let idle_s = profile.cache.and_then(|cache| cache.idle_s).unwrap_or(0.0);
        let forgets = Duration::try_from_secs_f64(idle_s * SURELY_IDLE).unwrap_or_default();
        KnownSwitchTiming { tables: profile.tables.clone(), delays_s, forgets }
    }
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
    let mut bench = TestBench::new(device, settings, stop);
    if bench.has_channel() {
        bench.learn_ports(&[])?;
    } else {
        bench.find_way()?;
    }
    bench.rest(known.forgets)?;
    bench.knows_forwarding(&known.delays_s, None);
    match &known.tables {
        Some(tables) => bench.know(tables.clone())?,
        None => bench.clear()?,
    }
    Ok(bench)
}

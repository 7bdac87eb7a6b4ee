//! How well a profile foretells what a switch does: commands and packets that are drawn are given to the switch, and to a switch in virtual time with the profile;
//! what each of them took is compared by whoever asks (Cheng 2015, sections 4.5 and 5.4).
//!
//! Both are measured by the same code: [`commands()`] by packets that show when each command was carried out, [`packets()`] by when each comes out.
mod commands;
mod packets;

pub use crate::bench::Became;
pub use commands::{CommandSeries, Commands, commands};
pub use packets::{Packet, PacketSeries, packets};

use crate::bench::Bench;
use crate::device::Device;
use crate::{ProfilerError, Settings};
use weir_model::switch::device::SwitchModel;

/// What is known of the switch: where its entries are, and what packets take there. It says how often packets can be sent, nothing else.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its tables; none if nothing is known.
    pub tables: Option<SwitchModel>,
    /// What packets take in each level, in seconds.
    pub delays_s: Vec<f64>,
}

/// A bench on which the switch is empty, and its ports are found.
fn bench<'a>(
    device: &'a mut dyn Device,
    known: &Known,
    settings: Settings,
    stop: &'a mut dyn FnMut() -> bool,
) -> Result<Bench<'a>, ProfilerError> {
    let interfaces = device.interfaces();
    if interfaces < 2 {
        let expected = "two at least: where packets go in and come out";
        return Err(ProfilerError::wrong("interfaces (--data)", interfaces, expected));
    }
    if device.version().is_none() {
        let expected = "its control channel, such as tcp:192.0.2.1:6653: entries are to be added";
        return Err(ProfilerError::wrong("a device for random commands or packets", "none with OpenFlow", expected));
    }
    let mut bench = Bench::new(device, settings, stop);
    bench.learn_ports(&[])?;
    bench.knows_forwarding(&known.delays_s, None);
    match &known.tables {
        Some(tables) => bench.know(tables.clone())?,
        None => bench.clear()?,
    }
    Ok(bench)
}

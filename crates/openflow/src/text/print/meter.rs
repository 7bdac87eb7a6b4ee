//! Prints the messages about meters.
use super::shape::{self, duration};
use crate::model::MeterId;
use crate::model::meter::{Band, BandKind, MeterCommand, MeterFeatures, MeterMod, MeterStats};
use std::fmt::Write as _;

/// Names of meter flags, `OFPMF_*` (OpenFlow 1.3.5, 7.3.4.4).
const FLAGS: shape::BitNames = &[(1, "kbps"), (2, "pktps"), (4, "burst"), (8, "stats")];
const BURST: u16 = 4;

pub(super) fn meter_mod(meter_mod: &MeterMod) -> String {
    let command = match meter_mod.command {
        MeterCommand::Add => "ADD".into(),
        MeterCommand::Modify => "MOD".into(),
        MeterCommand::Delete => "DEL".into(),
        MeterCommand::Unknown(number) => format!("cmd:{number}"),
    };
    format!(" {command} {}", config(meter_mod.meter, meter_mod.flags, &meter_mod.bands))
}

/// Prints a meter and its bands, each band on its own line, as `ovs-ofctl dump-meters` does.
pub fn config(meter: MeterId, flags: u16, bands: &[Band]) -> String {
    let words = if flags == 0 { String::new() } else { shape::bits(flags.into(), FLAGS) + " " };
    let head = format!("meter={} {words}bands=", meter);
    bands.iter().fold(head, |text, band| format!("{text}\n{}", self::band(flags, band))) + "\n"
}

fn band(flags: u16, band: &Band) -> String {
    let (kind, more) = match &band.kind {
        BandKind::Drop => ("drop".into(), String::new()),
        BandKind::DscpRemark { prec_level } => ("dscp_remark".into(), format!(" prec_level={prec_level}")),
        BandKind::Experimenter { id, data } => {
            ("experimenter".into(), format!(" id={id:#x} data={}", crate::text::raw::hex(&data.0)))
        }
        BandKind::Unknown { kind, data } => (kind.to_string(), format!(" data={}", crate::text::raw::hex(&data.0))),
    };
    let burst = if flags & BURST != 0 { format!(" burst_size={}", band.burst_size) } else { String::new() };
    format!("type={kind} rate={}{burst}{more}", band.rate)
}

/// Prints the statistics of a meter, each band on its own line, as `ovs-ofctl meter-stats` does.
pub fn stats(stats: &MeterStats) -> String {
    let mut text = format!(
        "meter:{} flow_count:{} packet_in_count:{} byte_in_count:{} duration:{} bands:\n",
        stats.meter,
        stats.flow_count,
        stats.packet_in_count,
        stats.byte_in_count,
        duration(stats.duration_sec, stats.duration_nsec)
    );
    for (at, (packets, bytes)) in stats.bands.iter().enumerate() {
        let _ = writeln!(text, "{at}: packet_count:{packets} byte_count:{bytes}");
    }
    text
}

pub(super) fn features(features: &MeterFeatures) -> String {
    format!(
        "\nmax_meter:{} max_bands:{} max_color:{}\nband_types: {}\ncapabilities: {}\n",
        features.max_meter,
        features.max_bands,
        features.max_color,
        shape::bits(features.band_types, &[(1 << 1, "drop"), (1 << 2, "dscp_remark")]),
        shape::bits(features.capabilities, FLAGS)
    )
}

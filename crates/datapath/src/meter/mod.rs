//! Meters (OpenFlow 1.3.5, 5.7): the bands of a meter measure the packets of the flow entries that name it. A packet
//! above a band's rate is dropped, or its DSCP field is remarked.
//!
//! Each band has its own [`bucket::TokenBucket`], which measures every packet of the meter. If a packet exceeds
//! several bands, the one with the highest rate acts. The measured size is that of the frame when it reaches the
//! meter, from the destination address on, without frame check sequence, preamble and gap. A super-frame counts as
//! the frames it will be cut into, in packets and in bytes, so that a rate does not depend on the senders' offloads.
//! The super-frame passes or is dropped as a whole.
pub(crate) mod bucket;
mod change;
mod dscp;
mod undo;

pub(crate) use dscp::{remark, remark_frame};
pub(crate) use undo::SavedMeters;

use crate::DropReason;
use crate::effects::MeterVerdict;
use crate::types::duration;
use bucket::{TokenBucket, TokenCost};
use foldhash::{HashMap, HashMapExt};
use std::sync::{Mutex, MutexGuard, PoisonError};
use weir_openflow::model::error::{BadAction, MeterModFailed};
use weir_openflow::model::meter::{Band, BandKind, MeterConfig, MeterFeatures, MeterStats, flags};
use weir_openflow::model::{Action, MeterId};
use weir_packet::offload::WireSize;
use weir_units::Instant;

/// Maximum number of meters, not counting the reserved ones. Beyond it a meter-mod is refused with
/// `OFPMMFC_OUT_OF_METERS`.
pub const MAX_METERS: u32 = 65_536;
/// Maximum number of bands per meter. Beyond it a meter-mod is refused with `OFPMMFC_OUT_OF_BANDS`.
pub const MAX_BANDS: u8 = 16;

/// All meters of a datapath.
#[derive(Debug, Clone)]
pub(crate) struct MeterTable {
    by_id: HashMap<MeterId, SharedMeter>,
}

/// A meter that workers share: its bands measure the packets of all workers, one packet at a time. With exclusive
/// access to the datapath no lock is taken.
#[derive(Debug)]
struct SharedMeter(Mutex<MeterState>);

impl SharedMeter {
    fn new(meter: MeterState) -> SharedMeter {
        SharedMeter(Mutex::new(meter))
    }

    /// Locks the meter, for a few tens of nanoseconds. A poisoned lock is accepted, because a meter is consistent
    /// even after a panic.
    fn lock(&self) -> MutexGuard<'_, MeterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get_mut(&mut self) -> &mut MeterState {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for SharedMeter {
    fn clone(&self) -> SharedMeter {
        SharedMeter::new(self.lock().clone())
    }
}

/// State of one meter.
#[derive(Debug, Clone)]
struct MeterState {
    /// Flags `OFPMF_*`, as requested.
    flags: u16,
    bands: Vec<BandState>,
    created: Instant,
    /// Number of packets and bytes measured.
    packets: u64,
    bytes: u64,
}

/// A band with its state.
#[derive(Debug, Clone)]
struct BandState {
    band: Band,
    bucket: TokenBucket,
    /// Number of packets and bytes that the band acted on.
    packets: u64,
    bytes: u64,
}

impl MeterTable {
    pub(crate) fn new() -> MeterTable {
        MeterTable { by_id: HashMap::new() }
    }

    /// Returns true if the meter exists.
    pub(crate) fn contains(&self, meter: MeterId) -> bool {
        self.by_id.contains_key(&meter)
    }

    /// Measures a packet. A meter that does not exist lets it pass.
    pub(crate) fn measure(&mut self, now: Instant, meter: MeterId, size: WireSize) -> MeterVerdict {
        self.by_id.get_mut(&meter).map_or(MeterVerdict::Pass, |meter| meter.get_mut().measure(now, size))
    }

    /// Measures a packet like [`MeterTable::measure`], concurrently with other workers.
    pub(crate) fn measure_shared(&self, now: Instant, meter: MeterId, size: WireSize) -> MeterVerdict {
        self.by_id.get(&meter).map_or(MeterVerdict::Pass, |meter| meter.lock().measure(now, size))
    }

    /// Returns what [`MeterTable::measure`] would return, without counting.
    pub(crate) fn foresee(&self, now: Instant, meter: MeterId, size: WireSize) -> MeterVerdict {
        self.by_id.get(&meter).map_or(MeterVerdict::Pass, |meter| meter.lock().clone().measure(now, size))
    }

    /// Measures a punted packet with the meters of the slow path and of the controllers. Returns the number of steps
    /// by which its drop precedence is raised.
    ///
    /// # Errors
    /// One of the meters drops the packet; its drop reason is returned.
    pub(crate) fn measure_punt(&mut self, now: Instant, size: WireSize) -> Result<u8, DropReason> {
        if self.by_id.is_empty() {
            return Ok(0);
        }
        PUNT_METERS.into_iter().try_fold(0, |steps, (meter, reason)| match self.measure(now, meter, size) {
            MeterVerdict::Pass => Ok(steps),
            MeterVerdict::Remark(more) => Ok(more.saturating_add(steps)),
            MeterVerdict::Drop => Err(reason),
        })
    }

    /// Returns the statistics of one meter or of all, ordered by number; `flows` returns the number of entries that
    /// use a meter.
    ///
    /// # Errors
    /// The meter does not exist.
    pub(crate) fn stats(
        &self,
        now: Instant,
        wanted: MeterId,
        flows: impl Fn(MeterId) -> u32,
    ) -> Result<Vec<MeterStats>, MeterModFailed> {
        self.check_wanted(wanted)?;
        Ok(self.wanted(wanted).map(|(id, meter)| meter.lock().stats(now, id, flows(id))).collect())
    }

    /// Returns the configuration of one meter or of all as requested, ordered by number.
    ///
    /// # Errors
    /// The meter does not exist.
    pub(crate) fn configs(&self, wanted: MeterId) -> Result<Vec<MeterConfig>, MeterModFailed> {
        self.check_wanted(wanted)?;
        let config = |(id, meter): (MeterId, &SharedMeter)| {
            let meter = meter.lock();
            let bands = meter.bands.iter().map(|metered| metered.band.clone()).collect();
            MeterConfig { flags: meter.flags, meter: id, bands }
        };
        Ok(self.wanted(wanted).map(config).collect())
    }

    /// Checks that the meters used in a list of actions exist.
    ///
    /// # Errors
    /// A meter does not exist.
    pub(crate) fn check_actions(&self, actions: &[Action]) -> Result<(), BadAction> {
        let is_there = |action: &Action| match action {
            Action::Meter(meter) => self.contains(*meter),
            _ => true,
        };
        if actions.iter().all(is_there) { Ok(()) } else { Err(BadAction::BadMeter) }
    }

    /// Checks that a requested meter exists, or that all meters are requested.
    fn check_wanted(&self, wanted: MeterId) -> Result<(), MeterModFailed> {
        let is_known = wanted == MeterId::ALL || self.contains(wanted);
        if is_known { Ok(()) } else { Err(MeterModFailed::UnknownMeter) }
    }

    fn wanted(&self, wanted: MeterId) -> impl Iterator<Item = (MeterId, &SharedMeter)> {
        let mut ids: Vec<MeterId> = match wanted {
            MeterId::ALL => self.by_id.keys().copied().collect(),
            one => vec![one],
        };
        ids.sort_unstable();
        ids.into_iter().filter_map(|id| Some((id, self.by_id.get(&id)?)))
    }
}

/// Meters of punted packets, with the reason of their drops. Only punted packets leave the packet path, so both
/// meters measure the same packets, the slow path's first.
pub(crate) const PUNT_METERS: [(MeterId, DropReason); 2] =
    [(MeterId::SLOWPATH, DropReason::SlowPathMeter), (MeterId::CONTROLLER, DropReason::ControllerMeter)];

/// Features of meters (OpenFlow 1.3.5, 7.3.5.14).
pub(crate) const FEATURES: MeterFeatures = MeterFeatures {
    max_meter: MAX_METERS,
    // OFPMBT_DROP and OFPMBT_DSCP_REMARK.
    band_types: 1 << 1 | 1 << 2,
    capabilities: flags::ALL as u32,
    max_bands: MAX_BANDS,
    // OFPMFF_ACTION_SET, OFPMFF_ANY_POSITION, OFPMFF_MULTI_LIST (OpenFlow 1.5.1, 7.3.5.16).
    features: 0b111,
    // Packets carry no colour from one meter to the next.
    max_color: 0,
};

impl MeterState {
    fn measure(&mut self, now: Instant, size: WireSize) -> MeterVerdict {
        self.packets += u64::from(size.packets);
        self.bytes += size.bytes;
        let cost = if self.flags & flags::PKTPS != 0 {
            TokenCost::of_packets(size.packets)
        } else {
            TokenCost::of_bytes(size.bytes)
        };
        let mut acting: Option<&mut BandState> = None;
        for metered in &mut self.bands {
            let conforms = metered.bucket.take(now, cost);
            if !conforms && acting.as_ref().is_none_or(|other| other.band.rate < metered.band.rate) {
                acting = Some(metered);
            }
        }
        let Some(metered) = acting else { return MeterVerdict::Pass };
        metered.packets += u64::from(size.packets);
        metered.bytes += size.bytes;
        match metered.band.kind {
            BandKind::DscpRemark { prec_level } => MeterVerdict::Remark(prec_level),
            // Other kinds than drop are refused by the meter-mod.
            _ => MeterVerdict::Drop,
        }
    }

    fn stats(&self, now: Instant, meter: MeterId, flow_count: u32) -> MeterStats {
        let (duration_sec, duration_nsec) = duration(now, self.created);
        MeterStats {
            meter,
            flow_count,
            packet_in_count: self.packets,
            byte_in_count: self.bytes,
            duration_sec,
            duration_nsec,
            bands: self.bands.iter().map(|metered| (metered.packets, metered.bytes)).collect(),
        }
    }
}

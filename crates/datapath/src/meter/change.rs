//! Adds, changes and deletes meters (OpenFlow 1.3.5, 6.6 and 7.3.4.4).
use super::bucket::TokenBucket;
use super::{BandState, MAX_BANDS, MAX_METERS, MeterState, MeterTable, SharedMeter};
use weir_openflow::model::MeterId;
use weir_openflow::model::error::MeterModFailed;
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod, flags};
use weir_units::Instant;

impl MeterTable {
    /// Applies a meter-mod. Returns the deleted meter, or [`MeterId::ALL`] if all were deleted: the caller must
    /// remove the flow entries that use it.
    ///
    /// Every rate and burst is supported, including zero: a band of rate zero acts on every packet that its burst
    /// does not cover.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn apply(&mut self, now: Instant, change: &MeterMod) -> Result<Option<MeterId>, MeterModFailed> {
        match change.command {
            MeterCommand::Add => {
                check_number(change.meter)?;
                if self.by_id.contains_key(&change.meter) {
                    return Err(MeterModFailed::MeterExists);
                }
                check(change)?;
                if change.meter <= MeterId::MAX && self.n_ordinary() >= MAX_METERS as usize {
                    return Err(MeterModFailed::OutOfMeters);
                }
                self.by_id.insert(change.meter, SharedMeter::new(MeterState::new(now, change)));
            }
            MeterCommand::Modify => {
                check_number(change.meter)?;
                let meter = self.by_id.get_mut(&change.meter).ok_or(MeterModFailed::UnknownMeter)?;
                check(change)?;
                meter.get_mut().modify(now, change);
            }
            MeterCommand::Delete => {
                self.delete(change.meter);
                return Ok(Some(change.meter));
            }
            MeterCommand::Unknown(_) => return Err(MeterModFailed::BadCommand),
        }
        Ok(None)
    }

    /// Deletes a meter or all meters. A meter that does not exist is no error (OpenFlow 1.3.5, 6.6).
    fn delete(&mut self, meter: MeterId) {
        match meter {
            MeterId::ALL => self.by_id.clear(),
            one => drop(self.by_id.remove(&one)),
        }
    }

    fn n_ordinary(&self) -> usize {
        let is_there = |meter: &MeterId| usize::from(self.by_id.contains_key(meter));
        self.by_id.len() - is_there(&MeterId::SLOWPATH) - is_there(&MeterId::CONTROLLER)
    }
}

impl MeterState {
    fn new(now: Instant, change: &MeterMod) -> MeterState {
        let bands = change.bands.iter().map(|band| BandState::new(now, change.flags, band)).collect();
        MeterState { flags: change.flags, bands, created: now, packets: 0, bytes: 0 }
    }

    /// Gives the meter new bands. The meter's counters stay. A band at the position of an old one of the same kind
    /// keeps its counters and its remaining tokens.
    fn modify(&mut self, now: Instant, change: &MeterMod) {
        let same_unit = (self.flags ^ change.flags) & flags::PKTPS == 0;
        let bands = change.bands.iter().enumerate().map(|(at, band)| {
            let fresh = BandState::new(now, change.flags, band);
            let is_same =
                |old: &&BandState| std::mem::discriminant(&old.band.kind) == std::mem::discriminant(&band.kind);
            let Some(old) = self.bands.get(at).filter(is_same) else { return fresh };
            let bucket = match same_unit {
                true => old.bucket.with(now, band.rate, burst(change.flags, band)),
                false => fresh.bucket,
            };
            BandState { bucket, packets: old.packets, bytes: old.bytes, ..fresh }
        });
        self.bands = bands.collect();
        self.flags = change.flags;
    }
}

impl BandState {
    fn new(now: Instant, flags: u16, band: &Band) -> BandState {
        let bucket = TokenBucket::new(now, band.rate, burst(flags, band));
        BandState { band: band.clone(), bucket, packets: 0, bytes: 0 }
    }
}

/// Returns the band's burst, which counts only if the meter's flags say so.
fn burst(flags: u16, band: &Band) -> Option<u32> {
    (flags & flags::BURST != 0).then_some(band.burst_size)
}

/// Checks a meter's number. Ordinary numbers begin at 1 (OpenFlow 1.3.5, 7.3.4.4).
fn check_number(meter: MeterId) -> Result<(), MeterModFailed> {
    match meter {
        MeterId::SLOWPATH | MeterId::CONTROLLER => Ok(()),
        MeterId(1..) if meter <= MeterId::MAX => Ok(()),
        _ => Err(MeterModFailed::InvalidMeter),
    }
}

fn check(change: &MeterMod) -> Result<(), MeterModFailed> {
    const BOTH: u16 = flags::KBPS | flags::PKTPS;
    // With neither flag the rate is in kbit/s (OpenFlow 1.3.5, 7.3.4.4).
    if change.flags & !flags::ALL != 0 || change.flags & BOTH == BOTH {
        return Err(MeterModFailed::BadFlags);
    }
    if change.bands.len() > usize::from(MAX_BANDS) {
        return Err(MeterModFailed::OutOfBands);
    }
    change.bands.iter().try_for_each(|band| match band.kind {
        BandKind::Drop => Ok(()),
        // Such a band would raise the drop precedence by zero steps.
        BandKind::DscpRemark { prec_level: 0 } => Err(MeterModFailed::BadBandValue),
        BandKind::DscpRemark { .. } => Ok(()),
        BandKind::Experimenter { .. } | BandKind::Unknown { .. } => Err(MeterModFailed::BadBand),
    })
}

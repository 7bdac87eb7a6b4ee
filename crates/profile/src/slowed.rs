//! Multiplies all times of a profile by a factor.
use crate::{ControlPathTiming, LevelForwarding, Profile, ReleaseGate, ReturnDiscipline, ServiceTime, SwitchTiming};
use std::time::Duration;
use weir_model::ModelError;
use weir_model::switch::device::TableLevel;
use weir_model::switch::forward::BASE;

impl Profile {
    /// Returns the profile with all times multiplied by `factor`. Its evidence is removed.
    ///
    /// # Errors
    /// `DOMAIN` if the factor is not above 0.
    pub fn slowed(&self, factor: f64) -> Result<Profile, ModelError> {
        let mut slow = self.clone();
        slow.evidence.clear();
        if let Some(tables) = &mut slow.tables {
            tables.batching.timeout_s *= factor;
            tables.levels.iter_mut().for_each(|level| slow_level(level, factor));
        }
        slow.forwarding.iter_mut().flatten().for_each(|forwarding| slow_forwarding(forwarding, factor));
        if let Some(lag) = &mut slow.barrier.lag {
            *lag = lag.slowed(factor)?;
        }
        if let Some(cache) = &mut slow.cache {
            [&mut cache.first_s, &mut cache.revalidate_s]
                .into_iter()
                .chain(&mut cache.idle_s)
                .for_each(|s| *s *= factor);
        }
        slow.effect = slow.effect.map(|effect| effect.slowed(factor)).transpose()?;
        slow.timing = slow.timing.map(|timing| timing.slowed(factor)).transpose()?;
        Ok(slow)
    }
}

impl ServiceTime {
    /// Returns the service time multiplied by `factor`.
    ///
    /// # Errors
    /// `DOMAIN` if the factor is not above 0.
    pub fn slowed(&self, factor: f64) -> Result<ServiceTime, ModelError> {
        let law = self.law.as_ref().map(|law| law.scaled(factor)).transpose()?;
        Ok(ServiceTime { law, per_byte_s: self.per_byte_s * factor })
    }
}

impl SwitchTiming {
    /// Returns the timing with all times multiplied by `factor`.
    ///
    /// # Errors
    /// `DOMAIN` if the factor is not above 0.
    pub fn slowed(&self, factor: f64) -> Result<SwitchTiming, ModelError> {
        let service =
            |service: &Option<ServiceTime>| service.as_ref().map(|service| service.slowed(factor)).transpose();
        let time = |time: Duration| Duration::try_from_secs_f64(time.as_secs_f64() * factor).unwrap_or(Duration::MAX);
        let control = match &self.control {
            ControlPathTiming::Agents { packet_in, packet_out, shared, buffer } => ControlPathTiming::Agents {
                packet_in: service(packet_in)?,
                packet_out: service(packet_out)?,
                shared: *shared,
                buffer: *buffer,
            },
            ControlPathTiming::Measured { delay_s, capacity, scv, buffer } => ControlPathTiming::Measured {
                delay_s: delay_s * factor,
                capacity: capacity / factor,
                scv: *scv,
                buffer: *buffer,
            },
        };
        let returns = match &self.returns {
            ReturnDiscipline::Priority { service: own, buffer } => {
                ReturnDiscipline::Priority { service: service(own)?, buffer: *buffer }
            }
            direct => direct.clone(),
        };
        let gate = self.gate.map(|gate| match gate {
            ReleaseGate::Tick { every, most } => ReleaseGate::Tick { every: time(every), most },
            ReleaseGate::Batch { packets, timeout, stages } => {
                ReleaseGate::Batch { packets, timeout: time(timeout), stages }
            }
        });
        Ok(SwitchTiming {
            data: service(&self.data)?,
            data_buffer: self.data_buffer,
            gate,
            control,
            returns,
            write: time(self.write),
            slow: time(self.slow),
        })
    }
}

fn slow_level(level: &mut TableLevel, factor: f64) {
    let costs = &mut level.costs;
    let overheads =
        [&mut costs.add.single, &mut costs.add.several, &mut costs.modify.single, &mut costs.modify.several];
    overheads.into_iter().for_each(|overhead| overhead.per_entry_s *= factor);
    let others = [&mut costs.shift_s, &mut costs.search_s, &mut costs.write_s];
    others.into_iter().chain(&mut costs.delete_s).for_each(|cost| *cost *= factor);
}

fn slow_forwarding(forwarding: &mut LevelForwarding, factor: f64) {
    let LevelForwarding { base_s, slopes, gap_levels_s, busy_s, measured } = forwarding;
    // Delays at the base are those with the base's time between packets, which stays: it may now be in another level.
    let below = |factor: f64| gap_levels_s.iter().filter(|gap| BASE.gap_s >= **gap * factor).count() as f64;
    let moved_s = (below(factor) - below(1.0)) * slopes.per_level_s;
    base_s.iter_mut().flatten().for_each(|base| *base = (*base + moved_s).max(0.0));
    let slopes = [&mut slopes.per_level_s, &mut slopes.per_entry_s, &mut slopes.per_byte_s];
    let measured = [&mut measured.least.gap_s, &mut measured.most.gap_s, &mut measured.shortest_s];
    let times = base_s.iter_mut().flatten().chain(slopes).chain(gap_levels_s).chain(busy_s).chain(measured);
    times.for_each(|time| *time *= factor);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MatchLayers, SHIPPED};
    use std::path::Path;
    use weir_model::switch::forward::PacketConditions;

    #[test]
    fn packets_are_slowed_in_each_level_of_times_between_them() {
        let text = "name = 'p'\ndevice = 'd'\norigin = 'assumed'\nsource = 's'\n[[level]]\nname = 'l'\n\
            forward = { base_l2 = '20us', gap_levels = ['50us', '1ms'], per_gap_level = '5us' }";
        let forwarding = |profile: &Profile| profile.forwarding[0].clone().unwrap();
        let profile = Profile::parse(text, "p").unwrap();
        let (fast, slow) = (forwarding(&profile), forwarding(&profile.slowed(10.0).unwrap()));
        for gap_s in [0.0, 60e-6, 0.5] {
            let delay = |law: &LevelForwarding, gap_s| law.forward(MatchLayers::L2, PacketConditions { gap_s, ..BASE });
            let (fast, slow) = (delay(&fast, gap_s).unwrap().delay_s, delay(&slow, gap_s * 10.0).unwrap().delay_s);
            assert!((slow - fast * 10.0).abs() < 1e-12, "{gap_s}: {fast} {slow}");
        }
    }

    #[test]
    fn every_time_is_longer_and_nothing_else_changes() {
        for (name, _) in SHIPPED {
            let profile = Profile::find(name, Path::new(".")).unwrap();
            let slow = profile.slowed(8.0).unwrap();
            for (was, is) in profile.parameters().into_iter().zip(slow.parameters()) {
                let (Some(fast), Some(slow)) = (was.value.number(), is.value.number()) else { continue };
                let expected = match was.unit {
                    "s" => fast * 8.0,
                    "1/s" => fast / 8.0,
                    _ => fast,
                };
                assert!((slow - expected).abs() <= expected.abs() * 1e-9, "{name} {}: {fast} {slow}", was.key);
            }
            assert_eq!(slow.slowed(1.0 / 8.0).unwrap().timing, profile.timing, "{name}");
        }
        let device = Profile::find("at-x510", Path::new(".")).unwrap();
        assert!(device.slowed(0.0).is_err());
    }
}

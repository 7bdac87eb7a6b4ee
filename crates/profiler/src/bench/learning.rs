//! Handles devices without a control channel, which learn addresses from source addresses of frames, as bridges do
//! (IEEE 802.1Q, 8.7).
use super::{PlannedProbe, TestBench};
use crate::rules::{SHORTEST, TestFlowEntry};
use crate::{MeasurementSettings, ProfilerError};
use std::time::Duration;
use weir_model::fit::quantiles::MedianAndSpread;

/// Packets that test the way through the device, and the time between them.
const LOOKING: usize = 20;
const APART: Duration = Duration::from_millis(2);
/// Time between two tests: bridge ports listen for half a minute before they forward.
const AGAIN: Duration = Duration::from_secs(1);
/// Time between frames that announce addresses, so that none is lost.
const TELLING: Duration = Duration::from_micros(20);

impl TestBench<'_> {
    /// Returns true if the device has a control channel.
    pub(crate) fn has_channel(&self) -> bool {
        self.device.version().is_some()
    }

    /// Waits until packets leave by the second interface. Returns the median delay of one, in seconds.
    pub(crate) fn find_way(&mut self) -> Result<f64, ProfilerError> {
        self.during = "looking for the way through the device".to_owned();
        let planned = [PlannedProbe { rule: MeasurementSettings::any_rule(), bytes: SHORTEST, gap: APART }; LOOKING];
        let until = self.device.now() + self.settings.patience;
        loop {
            self.tell_of(&[MeasurementSettings::any_rule()])?;
            let came: Vec<f64> = self.delays(&planned)?.into_iter().flatten().collect();
            if came.len() > LOOKING / 2 {
                return Ok(MedianAndSpread::of(&came)?.median);
            }
            if self.device.now() >= until {
                let found = format!("{} of {LOOKING} packets that were sent by the first", came.len());
                let expected = "all of them: a device that forwards between the two; are both connected to it, and its ports up and in one network?";
                return Err(ProfilerError::wrong("packets at the second interface (--data)", found, expected));
            }
            self.rest(AGAIN.min(until.since(self.device.now())))?;
        }
    }

    /// Makes the device learn that the entries' packets leave by the second interface.
    pub(super) fn learn(&mut self, rules: &[TestFlowEntry]) -> Result<(), ProfilerError> {
        self.rules.extend(rules.iter().map(|rule| (rule.number, (*rule, super::TestEntryOutput::On))));
        self.tell_of(rules)
    }

    /// Announces all addresses again to a device without a channel: such devices forget addresses that are silent for
    /// minutes.
    pub(crate) fn refresh(&mut self) -> Result<(), ProfilerError> {
        if self.has_channel() {
            return Ok(());
        }
        let rules: Vec<TestFlowEntry> = self.rules().map(|(rule, _)| rule).collect();
        self.tell_of(&rules)
    }

    fn tell_of(&mut self, rules: &[TestFlowEntry]) -> Result<(), ProfilerError> {
        for rule in rules {
            self.check_stop()?;
            self.device.transmit(1, &rule.answer())?;
            self.rest(TELLING)?;
        }
        Ok(())
    }
}

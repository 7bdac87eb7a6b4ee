//! A device without a control channel: where addresses are it learns from frames that come from there, as bridges do (IEEE 802.1Q, 8.7).
use super::{Bench, Planned};
use crate::rules::{Rule, SHORTEST};
use crate::{ProfilerError, Settings};
use std::time::Duration;
use weir_model::fit::order::Middle;

/// Packets that look for the way through the device, and how far they are apart.
const LOOKING: usize = 20;
const APART: Duration = Duration::from_millis(2);
/// How long before it is looked again: ports of bridges listen for half a minute before they forward.
const AGAIN: Duration = Duration::from_secs(1);
/// Frames that tell of addresses are so far apart: they are not to be lost.
const TELLING: Duration = Duration::from_micros(20);

impl Bench<'_> {
    /// Whether there is a control channel.
    pub(crate) fn has_channel(&self) -> bool {
        self.device.version().is_some()
    }

    /// Finds out that packets come out by the second interface; how long one takes, in seconds.
    pub(crate) fn find_way(&mut self) -> Result<f64, ProfilerError> {
        self.during = "looking for the way through the device".to_owned();
        let planned = [Planned { rule: Settings::any_rule(), bytes: SHORTEST, gap: APART }; LOOKING];
        let until = self.device.now() + self.settings.patience;
        loop {
            self.tell_of(&[Settings::any_rule()])?;
            let came: Vec<f64> = self.delays(&planned)?.into_iter().flatten().collect();
            if came.len() > LOOKING / 2 {
                return Ok(Middle::of(&came)?.median);
            }
            if self.device.now() >= until {
                let found = format!("{} of {LOOKING} packets that were sent by the first", came.len());
                let expected = "all of them: a device that forwards between the two; are both connected to it, and its ports up and in one network?";
                return Err(ProfilerError::wrong("packets at the second interface (--data)", found, expected));
            }
            self.rest(AGAIN.min(until.since(self.device.now())))?;
        }
    }

    /// Lets the device learn that entries' packets are to go to the second interface.
    pub(super) fn learn(&mut self, rules: &[Rule]) -> Result<(), ProfilerError> {
        self.rules.extend(rules.iter().map(|rule| (rule.number, (*rule, super::Way::On))));
        self.tell_of(rules)
    }

    /// Devices forget addresses that say nothing for minutes: a device that learns is told of all of them again.
    pub(crate) fn refresh(&mut self) -> Result<(), ProfilerError> {
        if self.has_channel() {
            return Ok(());
        }
        let rules: Vec<Rule> = self.rules().map(|(rule, _)| rule).collect();
        self.tell_of(&rules)
    }

    fn tell_of(&mut self, rules: &[Rule]) -> Result<(), ProfilerError> {
        for rule in rules {
            self.check_stop()?;
            self.device.transmit(1, &rule.answer())?;
            self.rest(TELLING)?;
        }
        Ok(())
    }
}

//! Configuration of a queue, as users write it: `ID[:min=RATE][:max=RATE][:buffer=SIZE][:priority=N]`.
use crate::link::DEFAULT_BUFFER;
use std::fmt;
use std::str::FromStr;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_units::{Bps, ByteSize};

/// Highest queue number; the next number means all queues in OpenFlow (`OFPQ_ALL`).
pub const MAX_ID: u32 = u32::MAX - 1;
/// Highest priority of a queue.
pub const MAX_PRIORITY: u8 = 7;
/// Minimum buffer: one frame of an ordinary link.
pub const MIN_BUFFER: ByteSize = ByteSize(1514);
/// Maximum buffer in bytes.
pub const MAX_BUFFER: ByteSize = ByteSize(64_000_000);

/// Configuration of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortQueueConfig {
    /// Number of the queue, up to [`MAX_ID`].
    pub id: u32,
    /// Guaranteed rate, whatever other queues send.
    pub min: Option<Bps>,
    /// Rate that the queue does not exceed.
    pub max: Option<Bps>,
    /// Maximum number of bytes that wait in the queue, [`MIN_BUFFER`] to [`MAX_BUFFER`].
    pub buffer: ByteSize,
    /// Priority for the rate that minimum rates leave over: higher values first, equal values share it. Up to
    /// [`MAX_PRIORITY`].
    pub priority: u8,
}

impl PortQueueConfig {
    /// Creates a queue without minimum and maximum, with [`DEFAULT_BUFFER`] and the lowest priority.
    pub const fn new(id: u32) -> PortQueueConfig {
        PortQueueConfig { id, min: None, max: None, buffer: DEFAULT_BUFFER, priority: 0 }
    }

    /// Checks that all values are in range and do not contradict each other.
    ///
    /// # Errors
    /// Text that says what was found and what was expected.
    pub fn check(&self) -> Result<(), String> {
        let PortQueueConfig { id, min, max, buffer, priority } = *self;
        if id > MAX_ID {
            return Err(format!("found queue {id}, expected 0 to {MAX_ID}"));
        }
        let wrong = |what: String| Err(format!("queue {id}: {what}"));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return wrong(format!("found min={min} above max={max}"));
        }
        if !(MIN_BUFFER..=MAX_BUFFER).contains(&buffer) {
            return wrong(format!("found buffer={buffer}, expected {MIN_BUFFER} to {MAX_BUFFER}"));
        }
        if priority > MAX_PRIORITY {
            return wrong(format!("found priority={priority}, expected 0 to {MAX_PRIORITY}"));
        }
        Ok(())
    }

    fn set(&mut self, part: &str) -> Result<(), String> {
        let expected = "expected min=RATE, max=RATE, buffer=SIZE or priority=N";
        let Some((key, value)) = part.split_once('=') else {
            return Err(format!("found `{part}`, {expected}"));
        };
        match key {
            "min" => self.min = Some(read(key, value)?),
            "max" => self.max = Some(read(key, value)?),
            "buffer" => self.buffer = read(key, value)?,
            "priority" => {
                self.priority =
                    value.parse().map_err(|_| format!("priority: found `{value}`, expected 0 to {MAX_PRIORITY}"))?;
            }
            _ => return Err(format!("found `{part}`, {expected}")),
        }
        Ok(())
    }
}

fn read<T: FromStr<Err = weir_units::ParseQuantityError>>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{key}: {error}"))
}

impl Default for PortQueueConfig {
    fn default() -> Self {
        PortQueueConfig::new(DEFAULT_QUEUE)
    }
}

impl FromStr for PortQueueConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let id = parts.next().unwrap_or_default();
        let number = id.parse().ok().filter(|_| !id.starts_with('+'));
        let id = number.ok_or_else(|| format!("found queue `{id}`, expected its number as in 1:min=10Mbit/s"))?;
        let mut config = PortQueueConfig::new(id);
        for (place, part) in parts.clone().enumerate() {
            let key = |part: &str| part.split('=').next().map(str::to_owned);
            if parts.clone().take(place).any(|before| key(before) == key(part)) {
                return Err(format!("queue {id}: `{part}`: given twice"));
            }
            config.set(part).map_err(|problem| format!("queue {id}: {problem}"))?;
        }
        config.check()?;
        Ok(config)
    }
}

impl fmt::Display for PortQueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        if let Some(min) = self.min {
            write!(f, ":min={}", min.exact())?;
        }
        if let Some(max) = self.max {
            write!(f, ":max={}", max.exact())?;
        }
        if self.buffer != DEFAULT_BUFFER {
            write!(f, ":buffer={}", self.buffer)?;
        }
        if self.priority != 0 {
            write!(f, ":priority={}", self.priority)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_both_ways() {
        for text in ["0", "1:min=10Mbit/s", "7:min=1Mbit/s:max=2.50Mbit/s:buffer=64kB:priority=3", "4294967294"] {
            assert_eq!(text.parse::<PortQueueConfig>().unwrap().to_string(), text);
        }
        let read: PortQueueConfig = "1:priority=1:max=1Gbit/s".parse().unwrap();
        assert_eq!(
            (read.priority, read.max, read.min, read.buffer),
            (1, Some(Bps(1_000_000_000)), None, DEFAULT_BUFFER)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, problem) in [
            ("", "found queue ``, expected its number as in 1:min=10Mbit/s"),
            ("+1", "found queue `+1`, expected its number"),
            ("x:min=1Mbit/s", "found queue `x`"),
            ("4294967295", "found queue 4294967295, expected 0 to 4294967294"),
            ("1:", "queue 1: found ``, expected min=RATE, max=RATE, buffer=SIZE or priority=N"),
            ("1:mim=1Mbit/s", "queue 1: found `mim=1Mbit/s`, expected min=RATE"),
            ("1:min=10", "queue 1: min: found `10`, expected a rate"),
            ("1:buffer=10B", "queue 1: found buffer=10B, expected 1514B to 64MB"),
            ("1:min=2Mbit/s:max=1Mbit/s", "queue 1: found min=2Mbit/s above max=1Mbit/s"),
            ("1:priority=8", "queue 1: found priority=8, expected 0 to 7"),
            ("1:priority=-1", "queue 1: priority: found `-1`"),
            ("1:max=1Mbit/s:max=1Mbit/s", "queue 1: `max=1Mbit/s`: given twice"),
        ] {
            let found = text.parse::<PortQueueConfig>().unwrap_err();
            assert!(found.starts_with(problem), "{text}: {found}");
        }
    }
}

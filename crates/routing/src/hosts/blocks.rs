//! Sources that are blocked for a while because they claimed what another host has.
use super::checks::Source;
use super::config::HostConfig;
use crate::map::SwitchPort;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use weir_units::Instant;

/// Alarm and block that wait until it is known whether the port leads to another switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offence {
    pub(super) kind: &'static str,
    pub(super) text: String,
    /// Port of the host whose address was claimed; `None` if it is the controller's.
    pub(super) holder: Option<SwitchPort>,
}

#[derive(Debug)]
struct Block {
    until: Instant,
    /// Port of the host whose address was claimed.
    holder: Option<SwitchPort>,
    /// Number of times that the source was blocked.
    times: u32,
    /// Offence that is said when the port has been up for a while, and that time.
    waiting: Option<(Instant, Offence)>,
}

/// Sources that are blocked or were blocked lately.
#[derive(Debug, Default)]
pub(super) struct BlockList {
    blocks: BTreeMap<Source, Block>,
    waiting: BTreeSet<(Instant, Source)>,
}

impl Block {
    fn new(now: Instant) -> Block {
        Block { until: now, holder: None, times: 0, waiting: None }
    }
}

impl BlockList {
    pub(super) fn is_blocked(&self, now: Instant, source: Source) -> bool {
        self.blocks.get(&source).is_some_and(|block| now < block.until || block.waiting.is_some())
    }

    /// Blocks a source because of what a host at `holder` has. Returns for how long.
    pub(super) fn block(
        &mut self,
        now: Instant,
        source: Source,
        holder: Option<SwitchPort>,
        config: &HostConfig,
    ) -> Duration {
        self.make_room(now, source, config);
        let block = self.blocks.entry(source).or_insert(Block::new(now));
        if now > block.until + config.max_block_time {
            block.times = 0;
        }
        let factor = 1_u32.checked_shl(block.times).unwrap_or(u32::MAX);
        let time = config.block_time.saturating_mul(factor).min(config.max_block_time);
        (block.until, block.holder, block.times) = (now + time, holder, block.times.saturating_add(1).min(31));
        time
    }

    /// Keeps an offence until `at`. The source is refused until then.
    pub(super) fn wait(&mut self, now: Instant, at: Instant, source: Source, offence: Offence, config: &HostConfig) {
        self.make_room(now, source, config);
        let block = self.blocks.entry(source).or_insert(Block::new(now));
        if let Some((before, _)) = block.waiting.replace((at, offence)) {
            self.waiting.remove(&(before, source));
        }
        self.waiting.insert((at, source));
    }

    /// Removes blocks that no longer matter, or the one that ends first, if there are as many as there may be.
    fn make_room(&mut self, now: Instant, source: Source, config: &HostConfig) {
        if self.blocks.len() < config.max_blocks.max(1) || self.blocks.contains_key(&source) {
            return;
        }
        self.blocks.retain(|_, block| block.waiting.is_some() || now <= block.until + config.max_block_time);
        if self.blocks.len() >= config.max_blocks.max(1) {
            let first = self.blocks.iter().min_by_key(|(_, block)| block.until).map(|(source, _)| *source);
            if let Some(block) = first.and_then(|first| self.blocks.remove(&first))
                && let (Some((at, _)), Some(first)) = (block.waiting, first)
            {
                self.waiting.remove(&(at, first));
            }
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|(at, _)| *at)
    }

    /// Returns the next offence whose time has come.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Source, Offence)> {
        let (at, source) = self.waiting.first().copied().filter(|(at, _)| *at <= now)?;
        self.waiting.remove(&(at, source));
        let (_, offence) = self.blocks.get_mut(&source)?.waiting.take()?;
        Some((source, offence))
    }

    /// Forgets what the sources did that `is_meant` accepts, by the source and the port of the host whose address it
    /// claimed. Returns them, true if they were blocked, and the offences that were not said yet.
    pub(super) fn end(
        &mut self,
        now: Instant,
        is_meant: impl Fn(Source, SwitchPort) -> bool,
    ) -> Vec<(Source, bool, Option<Offence>)> {
        let meant = self.blocks.iter().filter(|(source, block)| {
            let of_offence = block.waiting.as_ref().and_then(|(_, offence)| offence.holder);
            [block.holder, of_offence].into_iter().flatten().any(|holder| is_meant(**source, holder))
        });
        let meant: Vec<_> = meant.map(|(source, _)| *source).collect();
        let mut ended = Vec::new();
        for source in meant {
            let Some(block) = self.blocks.remove(&source) else { continue };
            if let Some((at, _)) = &block.waiting {
                self.waiting.remove(&(*at, source));
            }
            ended.push((source, now < block.until, block.waiting.map(|(_, offence)| offence)));
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;
    use weir_packet::MacAddr;

    fn seconds(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn source(last: u8) -> Source {
        Source { at: SwitchPort::new(1, PortNo(1)), mac: MacAddr([2, 0, 0, 0, 0, last]) }
    }

    #[test]
    fn blocks_grow_to_a_limit_and_are_forgotten() {
        let (mut blocks, config) = (BlockList::default(), HostConfig::default());
        let mut times = Vec::new();
        let mut now = seconds(0);
        for _ in 0..8 {
            let time = blocks.block(now, source(1), None, &config);
            assert!(blocks.is_blocked(now, source(1)) && !blocks.is_blocked(now + time, source(1)));
            (now, times) = (now + time, [times, vec![time.as_secs()]].concat());
        }
        assert_eq!(times, [10, 20, 40, 80, 160, 320, 600, 600]);
        assert_eq!(blocks.block(now + config.max_block_time * 2, source(1), None, &config), config.block_time);
    }

    #[test]
    fn there_are_no_more_than_allowed() {
        let (mut blocks, config) = (BlockList::default(), HostConfig { max_blocks: 3, ..HostConfig::default() });
        let holder = Some(SwitchPort::new(1, PortNo(9)));
        let offence = Offence { kind: "k", text: String::new(), holder };
        for last in 0..10 {
            blocks.block(seconds(last.into()), source(last), holder, &config);
            blocks.wait(seconds(last.into()), seconds(50), source(last), offence.clone(), &config);
        }
        assert_eq!((blocks.blocks.len(), blocks.waiting.len()), (3, 3));
        assert!(blocks.is_blocked(seconds(9), source(9)) && !blocks.is_blocked(seconds(9), source(1)));
        assert_eq!(blocks.end(seconds(9), |_, at| at == source(1).at), []);
        let ended = blocks.end(seconds(9), |source, at| source.mac.0[5] > 7 && Some(at) == holder);
        assert_eq!(ended, [8, 9].map(|last| (source(last), true, Some(offence.clone()))));
        assert_eq!((blocks.blocks.len(), blocks.waiting.len()), (1, 1));
        blocks.end(seconds(9), |_, _| true);
        assert_eq!((blocks.blocks.len(), blocks.next_due()), (0, None));
    }
}

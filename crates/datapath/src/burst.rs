//! Packets of one port together, as far as they have the same to do: all are parsed, then all are looked up, so that the waits for
//! memory of one overlap with the work on others; what they do is done one after the other, in the order they came.
//!
//! The burst does in short what most packets need: entries that output to a port, and gotos that lead to them. What an entry
//! asks for beyond that goes the general way ([`crate::pipeline`]), from the entry on that was found here.
use crate::VerdictCache;
use crate::cache::{Asked, Cache, CacheCounts};
use crate::edits::edits_at;
use crate::shape::{EntryId, Lanes, MAX_BURST};
use crate::table::{FlowTable, Verdict, VerdictWord, WorkerNo};
use weir_memory::Wide;
use weir_openflow::model::PortNo;
use weir_packet::parse::Written;
use weir_packet::{Field, Frame, FrameBody, Parsed, parse_common, parse_frame, parse_frequent};
use weir_units::Instant;

/// The memory that bursts are handled in.
#[derive(Debug)]
pub(crate) struct Burst {
    pub(crate) parsed: Box<[Parsed; MAX_BURST]>,
    /// Where something may be left in `parsed` that [`parse_common`] and [`parse_frequent`] do not overwrite.
    stale: Lanes,
    /// Those of `stale` where that is IPv6 addresses only.
    ipv6: Lanes,
    found: Box<[EntryId; MAX_BURST]>,
    /// Packets of which more is known than their bytes, or that begin with no Ethernet header.
    special: Lanes,
    /// Frames' lengths in bytes.
    bytes: Box<[u32; MAX_BURST]>,
    /// By packet: what becomes of it, and the table and entry that say so.
    pub(crate) fates: Box<[Fate; MAX_BURST]>,
    /// Packets that were last seen to have one verdict, and that.
    alike: (Lanes, VerdictWord),
    /// By table: the packets that come to it.
    waiting: Box<[Lanes; 256]>,
    /// The last table that packets come to.
    last_waiting: u8,
    cache: Cache,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) verdict: VerdictWord,
    pub(crate) table: u8,
    pub(crate) entry: EntryId,
}

/// Packets of one entry, one behind the other.
struct Run {
    entry: EntryId,
    packets: u64,
    bytes: u64,
}

impl Run {
    /// One without packets.
    #[inline(always)]
    const fn of(entry: EntryId) -> Run {
        Run { entry, packets: 0, bytes: 0 }
    }

    /// Adds a packet.
    #[inline(always)]
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Counts its packets.
    #[inline(always)]
    fn count(&self, table: &FlowTable, counting: Counting) {
        if let Counting::For(worker, now) = counting
            && let Some(count) = table.count_of(worker, self.entry)
        {
            count.add(self.packets, self.bytes, now);
        }
    }
}

/// Whether packets that are looked up are counted, for whom, and when they came.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counting {
    For(WorkerNo, Instant),
    /// They were already.
    Done,
}

impl Burst {
    pub(crate) fn new(cache: VerdictCache) -> Burst {
        let fate = Fate { verdict: VerdictWord::default(), table: 0, entry: EntryId::NONE };
        Burst {
            parsed: Box::new([Parsed::default(); MAX_BURST]),
            stale: Lanes(u64::MAX),
            ipv6: Lanes::default(),
            special: Lanes::default(),
            found: Box::new([EntryId::NONE; MAX_BURST]),
            bytes: Box::new([0; MAX_BURST]),
            fates: Box::new([fate; MAX_BURST]),
            alike: (Lanes::default(), VerdictWord::default()),
            waiting: Box::new([Lanes::default(); 256]),
            last_waiting: 0,
            cache: Cache::new(cache),
        }
    }

    /// What the verdict cache did.
    pub(crate) fn cache_counts(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// Parses frames, [`MAX_BURST`] at most, that came in on one port. Gives the packets that are ones: not cut short within
    /// the Ethernet header.
    #[inline(always)]
    pub(crate) fn parse<W: Wide>(&mut self, wide: W, frames: &[Frame], in_port: PortNo) -> Lanes {
        let all = Lanes::first(frames.len());
        if self.stale.0 & all.0 != 0 {
            self.freshen(all);
        }
        let (mut uncommon, mut special) = (Lanes::default(), Lanes::default());
        for (lane, (frame, slot)) in frames.iter().zip(self.parsed.iter_mut()).enumerate() {
            let frame: &FrameBody = frame;
            let is_plain = frame.is_plain();
            self.bytes[lane] = frame.bytes_len();
            if !is_plain {
                special.add(lane);
                uncommon.add(lane);
            } else if !parse_common(wide, frame, in_port, slot) {
                uncommon.add(lane);
            }
        }
        self.special = special;
        if uncommon.is_empty() { all } else { self.parse_others(frames, in_port, all, uncommon) }
    }

    /// Goes on with the frames that do not have the most common shape: those of frequent shapes, and any others.
    #[inline(never)]
    fn parse_others(&mut self, frames: &[Frame], in_port: PortNo, all: Lanes, uncommon: Lanes) -> Lanes {
        let mut packets = all;
        uncommon.each(|lane| {
            let (frame, slot) = (&frames[lane], &mut self.parsed[lane]);
            let written = if self.special.has(lane) { None } else { parse_frequent(frame, in_port, slot) };
            match written {
                Some(Written::Ordinary) => {}
                Some(Written::WithIpv6) => {
                    self.stale.add(lane);
                    self.ipv6.add(lane);
                }
                None => {
                    self.stale.add(lane);
                    if !parse_other(frame, in_port, slot) {
                        packets = packets.without(Lanes(1 << lane));
                    }
                }
            }
        });
        packets
    }

    /// Takes out what other packets left where the common ones write nothing.
    #[inline(never)]
    fn freshen(&mut self, all: Lanes) {
        Lanes(self.stale.0 & all.0).each(|lane| {
            if self.ipv6.has(lane) {
                self.parsed[lane].key.words[8..12].fill(0);
            } else {
                self.parsed[lane] = BLANK;
            }
        });
        (self.stale, self.ipv6) = (self.stale.without(all), self.ipv6.without(all));
    }

    /// Finds out what becomes of the packets, and counts them at the entries found. `generation` counts what may have changed the
    /// tables.
    #[inline(always)]
    pub(crate) fn look_up(&mut self, tables: &[FlowTable], generation: u64, lanes: Lanes, counting: Counting) {
        let is_cached = !self.cache.rests() && !matches!(counting, Counting::Done);
        let left = if is_cached { self.recall(tables, generation, lanes, counting) } else { lanes };
        // Without packets, too: what was noted of the last burst is not this one's.
        if !(is_cached && left.is_empty()) {
            self.look_through(tables, left, counting);
        }
        if is_cached {
            self.cache.end(&self.parsed, &self.fates);
        }
    }

    /// Asks the cache; gives the packets that are to be looked up.
    fn recall(&mut self, tables: &[FlowTable], generation: u64, lanes: Lanes, counting: Counting) -> Lanes {
        let Burst { parsed: keys, bytes, fates, .. } = self;
        let known = self.cache.begin(Asked { tables, generation, keys, lanes, bytes, counting, fates });
        self.alike = (lanes, known.alike.unwrap_or_default());
        known.left
    }

    /// Looks packets up in the tables.
    #[inline(always)]
    fn look_through(&mut self, tables: &[FlowTable], lanes: Lanes, counting: Counting) {
        let Some(first) = tables.first() else { return };
        first.lookup_burst(&self.parsed, lanes, &mut self.found);
        self.note(0, lanes);
        let on = self.judge(first, 0, lanes, counting);
        if on {
            self.go_on(tables, counting);
        }
    }

    /// Tells the cache where packets come, if it wants to know.
    #[inline(always)]
    fn note(&mut self, table: u8, lanes: Lanes) {
        if self.cache.notes() {
            self.cache.note(table, lanes, &self.found);
        }
    }

    /// Counts the packets that came to a table, and notes what becomes of each. Whether some go on to another table.
    #[inline(always)]
    fn judge(&mut self, table: &FlowTable, number: u8, lanes: Lanes, counting: Counting) -> bool {
        if let Some(entry) = self.only_entry(lanes) {
            return self.judge_alike(table, number, lanes, entry, counting);
        }
        // Packets of one entry often come together: they are counted as one.
        let (mut run, mut verdict, mut missed) = (Run::of(EntryId::NONE), VerdictWord::default(), 0);
        let (mut first, mut differs) = (None, false);
        for lane in lanes {
            let id = self.found[lane];
            if id != run.entry {
                run.count(table, counting);
                verdict = table.verdict(id);
                run = Run::of(id);
                differs |= *first.get_or_insert(verdict) != verdict;
            }
            run.add(self.bytes[lane]);
            self.fates[lane] = Fate { verdict, table: number, entry: id };
            missed += u64::from(id == EntryId::NONE);
        }
        run.count(table, counting);
        if let Counting::For(worker, _) = counting {
            let lookups = u64::from(lanes.count());
            table.looked_up(worker, lookups, lookups - missed);
        }
        // Misses that came before any entry were found have no verdict above.
        if differs || missed > 0 { self.part(lanes) } else { self.part_alike(lanes, first.unwrap_or_default()) }
    }

    /// Notes who goes on where. Whether somebody does.
    fn part(&mut self, lanes: Lanes) -> bool {
        self.alike = (Lanes::default(), VerdictWord::default());
        let mut on = false;
        for lane in lanes {
            if let Verdict::Goto(next) = self.fates[lane].verdict.get() {
                self.wait_at(next, Lanes(1 << lane));
                on = true;
            }
        }
        on
    }

    /// The same where all have one verdict.
    #[inline(always)]
    fn part_alike(&mut self, lanes: Lanes, verdict: VerdictWord) -> bool {
        self.alike = (lanes, verdict);
        let Verdict::Goto(next) = verdict.get() else { return false };
        self.wait_at(next, lanes);
        true
    }

    /// The entry, or none, that was found for all of these packets, which are the first of the burst.
    #[inline(always)]
    fn only_entry(&self, lanes: Lanes) -> Option<EntryId> {
        let count = lanes.count() as usize;
        let (first, others) = self.found.get(..count)?.split_first()?;
        let differs = others.iter().fold(0, |differs, other| differs | other.0 ^ first.0);
        (differs == 0 && lanes == Lanes::first(count)).then_some(*first)
    }

    /// The same as [`Burst::judge`] where one entry has all the packets.
    #[inline(always)]
    fn judge_alike(&mut self, table: &FlowTable, number: u8, lanes: Lanes, entry: EntryId, counting: Counting) -> bool {
        let count = lanes.count() as usize;
        let verdict = table.verdict(entry);
        self.fates[..count].fill(Fate { verdict, table: number, entry });
        let (packets, bytes) = (count as u64, self.bytes[..count].iter().map(|bytes| u64::from(*bytes)).sum());
        Run { entry, packets, bytes }.count(table, counting);
        if let Counting::For(worker, _) = counting {
            let matches = if entry == EntryId::NONE { 0 } else { packets };
            table.looked_up(worker, packets, matches);
        }
        self.part_alike(lanes, verdict)
    }

    #[inline(always)]
    fn wait_at(&mut self, table: u8, lanes: Lanes) {
        self.waiting[usize::from(table)].0 |= lanes.0;
        self.last_waiting = self.last_waiting.max(table);
    }

    /// The tables behind the first, each for all the packets that come to it: gotos lead only to later tables.
    #[inline(always)]
    fn go_on(&mut self, tables: &[FlowTable], counting: Counting) {
        let mut number = 1;
        while number <= self.last_waiting {
            let lanes = std::mem::take(&mut self.waiting[usize::from(number)]);
            // Compiling has checked that the table is there.
            if let Some(table) = tables.get(usize::from(number)).filter(|_| !lanes.is_empty()) {
                table.lookup_burst(&self.parsed, lanes, &mut self.found);
                self.note(number, lanes);
                self.judge(table, number, lanes, counting);
            }
            number += 1;
        }
        self.last_waiting = 0;
    }

    /// Whether all of some packets leave by ordinary ports as they are, or edited in a way that cannot fail.
    #[inline(always)]
    pub(crate) fn all_straight(&self, tables: &[FlowTable], frames: &[Frame], packets: Lanes) -> bool {
        let mut straight = Lanes::default();
        packets.without(self.special).each(|lane| match self.fates[lane].verdict.get() {
            Verdict::Output(_) => straight.add(lane),
            Verdict::Edit(_) if self.can_edit(tables, lane, &frames[lane]) => straight.add(lane),
            _ => {}
        });
        straight == packets
    }

    /// Whether a worker can begin with some packets beside others: what most of them need does not take the datapath alone.
    #[inline(never)]
    pub(crate) fn may_begin_beside(&self, tables: &[FlowTable], packets: Lanes) -> bool {
        let mut known = Fate { verdict: VerdictWord::default(), table: 0, entry: EntryId::NONE };
        let mut may = true;
        packets.each(|lane| {
            let fate = self.fates[lane];
            if fate != known && fate.verdict.get() == Verdict::Program {
                known = fate;
                let entry = tables.get(usize::from(fate.table)).and_then(|table| table.get(fate.entry));
                may &= entry.is_none_or(|entry| !entry.program.needs_all);
            }
        });
        may
    }

    #[inline(never)]
    fn can_edit(&self, tables: &[FlowTable], lane: usize, frame: &Frame) -> bool {
        edits_at(tables, self.fates[lane]).is_some_and(|edits| edits.fit(frame, &self.parsed[lane].layers))
    }

    /// Which of some packets are fragments.
    #[cold]
    pub(crate) fn fragments(&self, packets: Lanes) -> Lanes {
        let mut fragments = Lanes::default();
        packets.each(|lane| {
            if self.parsed[lane].key.get(Field::IpFrag) != 0 {
                fragments.add(lane);
            }
        });
        fragments
    }

    /// The port that a packet and those right behind it leave by as they are, and where these end; none if its way is longer, or there
    /// is no such packet.
    #[inline(always)]
    pub(crate) fn straight_from(&self, lane: usize, packets: Lanes, count: usize) -> Option<(PortNo, usize)> {
        if lane >= count {
            return None;
        }
        let plain = |lane: usize| packets.without(self.special).has(lane);
        if lane == 0
            && let (alike, verdict) = self.alike
            && let Verdict::Output(port) = verdict.get()
            && alike == Lanes::first(count)
            && self.special.is_empty()
        {
            return Some((port, count));
        }
        let verdict = self.fates[lane].verdict;
        let Verdict::Output(port) = verdict.get() else { return None };
        if !plain(lane) {
            return None;
        }
        let mut end = lane + 1;
        while end < count && self.fates[end].verdict == verdict && plain(end) {
            end += 1;
        }
        Some((port, end))
    }

    /// What a packet and those right behind it share if one entry edits them and then sends them by a port, which one, and where these
    /// packets end.
    #[inline(always)]
    pub(crate) fn edited_from(&self, lane: usize, packets: Lanes, count: usize) -> Option<(Fate, PortNo, usize)> {
        if lane >= count {
            return None;
        }
        let fate = self.fates[lane];
        let Verdict::Edit(port) = fate.verdict.get() else { return None };
        let packets = packets.without(self.special);
        let mut end = lane;
        while end < count && packets.has(end) && self.fates[end] == fate {
            end += 1;
        }
        (end > lane).then_some((fate, port, end))
    }

    /// States that a packet went the general way, which may leave anything in its place.
    pub(crate) fn spoil(&mut self, lane: usize) {
        self.stale.add(lane);
        self.ipv6 = self.ipv6.without(Lanes(1 << lane));
    }
}

/// What no packet has said anything about.
const BLANK: Parsed = {
    let mut blank = Parsed::EMPTY;
    blank.key.words[Field::ActsetOutput.place().word] = (PortNo::UNSET.0 as u64) << 32;
    blank
};

/// Parses a frame of any shape; whether it is a packet.
#[inline(never)]
fn parse_other(frame: &Frame, in_port: PortNo, slot: &mut Parsed) -> bool {
    let is_packet = parse_frame(frame, in_port, slot).is_ok();
    let word = Field::ActsetOutput.place().word;
    slot.key.words[word] |= BLANK.key.words[word];
    is_packet
}

#[cfg(test)]
mod tests;

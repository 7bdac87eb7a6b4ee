//! Handles packets of one port together: parses all of them, then looks all of them up, so that memory waits for one
//! packet overlap with the work on others. Their actions are executed one after the other, in the order of arrival.
//!
//! The burst handles what most packets need: entries that output to a port, and gotos to such entries. Everything
//! else runs in the [`crate::pipeline`], starting at the entry found here.
use crate::VerdictCacheMode;
use crate::cache::{CacheCounts, CacheQuery, WorkerVerdictCache};
use crate::counting::CountingMode;
use crate::edits::Edits;
use crate::shape::{BurstEntries, BurstHeaders, EntryId, Lanes, MAX_BURST};
use crate::table::FlowTable;
use crate::verdict::{EntryVerdict, LookupResult, VerdictWord};
use weir_memory::SimdInstructions;
use weir_openflow::model::PortNo;
use weir_packet::parse::WrittenKeyWords;
use weir_packet::{Field, Frame, FrameBody, ParsedHeaders, parse_common, parse_frame, parse_frequent};

/// Working memory for one burst: the parsed packets, and the verdicts found for them.
#[derive(Debug)]
pub(crate) struct BurstState {
    pub(crate) parsed: Box<BurstHeaders>,
    /// Places of `parsed` that hold data of earlier packets which [`parse_common`] and [`parse_frequent`] do not
    /// overwrite.
    stale: Lanes,
    /// Places of `stale` in which only the IPv6 addresses are such data.
    ipv6: Lanes,
    found: Box<BurstEntries>,
    /// Packets with metadata beyond their bytes, or without Ethernet header.
    special: Lanes,
    /// Packets of `special` without Ethernet header.
    bare: Lanes,
    /// Lengths of the frames in bytes.
    bytes: Box<[u32; MAX_BURST]>,
    /// By packet: its verdict, with the table and entry it comes from.
    pub(crate) results: Box<[LookupResult; MAX_BURST]>,
    /// Packets that the latest lookup found to have a common verdict, and this verdict.
    alike: (Lanes, VerdictWord),
    /// By table number: the packets that are still to be looked up in the table, because of a goto.
    waiting: Box<[Lanes; 256]>,
    /// Highest table number in which packets wait.
    last_waiting: u8,
    cache: WorkerVerdictCache,
}

/// Consecutive packets that match one entry, which are counted together.
struct EntryRun {
    entry: EntryId,
    packets: u64,
    bytes: u64,
}

impl EntryRun {
    /// Returns an empty run for `entry`.
    #[inline(always)]
    const fn of(entry: EntryId) -> EntryRun {
        EntryRun { entry, packets: 0, bytes: 0 }
    }

    /// Adds a packet.
    #[inline(always)]
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Adds the packets of the run to the counters of their entry, unless they are counted already.
    #[inline(always)]
    fn count(&self, table: &FlowTable, counting: CountingMode) {
        if let CountingMode::For(worker, now) = counting
            && let Some(count) = table.count_of(worker, self.entry)
        {
            count.add(self.packets, self.bytes, now);
        }
    }
}

impl BurstState {
    pub(crate) fn new(cache: VerdictCacheMode) -> BurstState {
        let fate = LookupResult { verdict: VerdictWord::default(), table: 0, entry: EntryId::NONE };
        BurstState {
            parsed: Box::new([ParsedHeaders::default(); MAX_BURST]),
            stale: Lanes(u64::MAX),
            ipv6: Lanes::default(),
            special: Lanes::default(),
            bare: Lanes::default(),
            found: Box::new([EntryId::NONE; MAX_BURST]),
            bytes: Box::new([0; MAX_BURST]),
            results: Box::new([fate; MAX_BURST]),
            alike: (Lanes::default(), VerdictWord::default()),
            waiting: Box::new([Lanes::default(); 256]),
            last_waiting: 0,
            cache: WorkerVerdictCache::new(cache),
        }
    }

    /// Returns the statistics of the verdict cache.
    pub(crate) fn cache_counts(&self) -> CacheCounts {
        self.cache.counts()
    }

    /// Parses frames received on one port, at most [`MAX_BURST`]. Returns the frames that are packets: not truncated
    /// within the Ethernet header.
    #[inline(always)]
    pub(crate) fn parse<W: SimdInstructions>(&mut self, wide: W, frames: &[Frame], in_port: PortNo) -> Lanes {
        let all = Lanes::first(frames.len());
        if self.stale.0 & all.0 != 0 {
            self.clear_stale(all);
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
        (self.special, self.bare) = (special, Lanes::default());
        if uncommon.is_empty() { all } else { self.parse_others(frames, in_port, all, uncommon) }
    }

    /// Parses the frames that do not have the most common shape: frequent shapes first, then any other.
    #[inline(never)]
    fn parse_others(&mut self, frames: &[Frame], in_port: PortNo, all: Lanes, uncommon: Lanes) -> Lanes {
        let mut packets = all;
        uncommon.each(|lane| {
            let (frame, slot) = (&frames[lane], &mut self.parsed[lane]);
            let is_special = self.special.has(lane);
            if is_special && !frame.packet_type().is_ethernet() {
                self.bare.add(lane);
            }
            let written = if is_special { None } else { parse_frequent(frame, in_port, slot) };
            match written {
                Some(WrittenKeyWords::Ordinary) => {}
                Some(WrittenKeyWords::WithIpv6) => {
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

    /// Clears the data of earlier packets that parsing of common shapes does not overwrite.
    #[inline(never)]
    fn clear_stale(&mut self, all: Lanes) {
        Lanes(self.stale.0 & all.0).each(|lane| {
            if self.ipv6.has(lane) {
                self.parsed[lane].key.words[8..12].fill(0);
            } else {
                self.parsed[lane] = BLANK;
            }
        });
        (self.stale, self.ipv6) = (self.stale.without(all), self.ipv6.without(all));
    }

    /// Looks packets up, in the cache if it is in use and otherwise in the tables. Sets the fate of each packet, and
    /// counts the packets at the entries found. `generation` is a number that increases whenever the tables may have
    /// changed.
    #[inline(always)]
    pub(crate) fn look_up(&mut self, tables: &[FlowTable], generation: u64, lanes: Lanes, counting: CountingMode) {
        let is_cached = !self.cache.skip_burst() && !matches!(counting, CountingMode::Done);
        let left = if is_cached { self.lookup_in_cache(tables, generation, lanes, counting) } else { lanes };
        // Also run for an empty burst: clears state left by the previous one.
        if !(is_cached && left.is_empty()) {
            self.lookup_in_tables(tables, left, counting);
        }
        if is_cached {
            self.cache.end(&self.parsed, &self.results);
        }
    }

    /// Looks packets up in the cache. Returns the packets that are not in the cache.
    fn lookup_in_cache(
        &mut self,
        tables: &[FlowTable],
        generation: u64,
        lanes: Lanes,
        counting: CountingMode,
    ) -> Lanes {
        let BurstState { parsed: keys, bytes, results: fates, .. } = self;
        // The cache does not compare the packet type.
        let (bare, lanes) = (Lanes(lanes.0 & self.bare.0), lanes.without(self.bare));
        let known =
            self.cache.begin(CacheQuery { tables, generation, keys, lanes, bytes, counting, lookup_results: fates });
        self.alike = (lanes, known.alike.unwrap_or_default());
        Lanes(known.left.0 | bare.0)
    }

    /// Looks packets up in the tables.
    #[inline(always)]
    fn lookup_in_tables(&mut self, tables: &[FlowTable], lanes: Lanes, counting: CountingMode) {
        let Some(first) = tables.first() else { return };
        self.look_up_in(first, 0, lanes);
        let on = self.resolve(first, 0, lanes, counting);
        if on {
            self.lookup_next_tables(tables, counting);
        }
    }

    /// Looks packets up in one table. Reports them to the cache if the cache records their paths.
    #[inline(always)]
    fn look_up_in(&mut self, table: &FlowTable, number: u8, lanes: Lanes) {
        let ethernet = lanes.without(self.bare);
        table.lookup_burst(&self.parsed, ethernet, &mut self.found);
        if ethernet != lanes {
            table.lookup_others(&self.parsed, lanes.without(ethernet), &mut self.found);
        }
        if self.cache.notes() {
            self.cache.note(number, ethernet, &self.found);
        }
    }

    /// Counts the packets that were looked up in a table, and sets their fates. Returns true if some of them continue
    /// in another table.
    #[inline(always)]
    fn resolve(&mut self, table: &FlowTable, number: u8, lanes: Lanes, counting: CountingMode) -> bool {
        if let Some(entry) = self.only_entry(lanes) {
            return self.resolve_uniform(table, number, lanes, entry, counting);
        }
        // Packets of one entry often come together. Such a run is counted at once.
        let (mut run, mut verdict, mut missed) = (EntryRun::of(EntryId::NONE), VerdictWord::default(), 0);
        let (mut first, mut differs) = (None, false);
        for lane in lanes {
            let id = self.found[lane];
            if id != run.entry {
                run.count(table, counting);
                verdict = table.verdict(id);
                run = EntryRun::of(id);
                differs |= *first.get_or_insert(verdict) != verdict;
            }
            run.add(self.bytes[lane]);
            self.results[lane] = LookupResult { verdict, table: number, entry: id };
            missed += u64::from(id == EntryId::NONE);
        }
        run.count(table, counting);
        if let CountingMode::For(worker, _) = counting {
            let lookups = u64::from(lanes.count());
            table.looked_up(worker, lookups, lookups - missed);
        }
        // Misses before the first entry found have no verdict in `first`.
        if differs || missed > 0 {
            self.queue_gotos(lanes)
        } else {
            self.queue_uniform_goto(lanes, first.unwrap_or_default())
        }
    }

    /// Queues each packet whose verdict is a goto at the table to which the goto leads. Returns true if there are such
    /// packets.
    fn queue_gotos(&mut self, lanes: Lanes) -> bool {
        self.alike = (Lanes::default(), VerdictWord::default());
        let mut on = false;
        for lane in lanes {
            if let EntryVerdict::Goto(next) = self.results[lane].verdict.get() {
                self.wait_at(next, Lanes(1 << lane));
                on = true;
            }
        }
        on
    }

    /// Queues packets that all have the verdict `verdict` at the next table, if the verdict is a goto. Returns true if
    /// it is.
    #[inline(always)]
    fn queue_uniform_goto(&mut self, lanes: Lanes, verdict: VerdictWord) -> bool {
        self.alike = (lanes, verdict);
        let EntryVerdict::Goto(next) = verdict.get() else { return false };
        self.wait_at(next, lanes);
        true
    }

    /// Returns the entry (or [`EntryId::NONE`]) that was found for all of these packets. Returns `None` if they have
    /// different entries, or are not the first packets of the burst without gaps.
    #[inline(always)]
    fn only_entry(&self, lanes: Lanes) -> Option<EntryId> {
        let count = lanes.count() as usize;
        let (first, others) = self.found.get(..count)?.split_first()?;
        let differs = others.iter().fold(0, |differs, other| differs | other.0 ^ first.0);
        (differs == 0 && lanes == Lanes::first(count)).then_some(*first)
    }

    /// Does what [`BurstState::resolve`] does, faster, for packets that all have the entry `entry`.
    #[inline(always)]
    fn resolve_uniform(
        &mut self,
        table: &FlowTable,
        number: u8,
        lanes: Lanes,
        entry: EntryId,
        counting: CountingMode,
    ) -> bool {
        let count = lanes.count() as usize;
        let verdict = table.verdict(entry);
        self.results[..count].fill(LookupResult { verdict, table: number, entry });
        let (packets, bytes) = (count as u64, self.bytes[..count].iter().map(|bytes| u64::from(*bytes)).sum());
        EntryRun { entry, packets, bytes }.count(table, counting);
        if let CountingMode::For(worker, _) = counting {
            let matches = if entry == EntryId::NONE { 0 } else { packets };
            table.looked_up(worker, packets, matches);
        }
        self.queue_uniform_goto(lanes, verdict)
    }

    #[inline(always)]
    fn wait_at(&mut self, table: u8, lanes: Lanes) {
        self.waiting[usize::from(table)].0 |= lanes.0;
        self.last_waiting = self.last_waiting.max(table);
    }

    /// Looks up the waiting packets in the tables after the first, in ascending order, because gotos lead only to
    /// later tables.
    #[inline(always)]
    fn lookup_next_tables(&mut self, tables: &[FlowTable], counting: CountingMode) {
        let mut number = 1;
        while number <= self.last_waiting {
            let lanes = std::mem::take(&mut self.waiting[usize::from(number)]);
            // Compiling the entry has checked that the table exists.
            if let Some(table) = tables.get(usize::from(number)).filter(|_| !lanes.is_empty()) {
                self.look_up_in(table, number, lanes);
                self.resolve(table, number, lanes, counting);
            }
            number += 1;
        }
        self.last_waiting = 0;
    }

    /// Returns true if the verdict of all these packets is an output to a port, unchanged or with edits that cannot
    /// fail.
    #[inline(always)]
    pub(crate) fn all_direct(&self, tables: &[FlowTable], frames: &[Frame], packets: Lanes) -> bool {
        let mut straight = Lanes::default();
        packets.without(self.special).each(|lane| match self.results[lane].verdict.get() {
            EntryVerdict::Output(_) => straight.add(lane),
            EntryVerdict::Edit(_) if self.can_edit(tables, lane, &frames[lane]) => straight.add(lane),
            _ => {}
        });
        straight == packets
    }

    /// Returns true if a worker can process these packets while other workers run: none of their entries has actions
    /// that need exclusive access to the datapath.
    #[inline(never)]
    pub(crate) fn can_execute_shared(&self, tables: &[FlowTable], packets: Lanes) -> bool {
        let mut known = LookupResult { verdict: VerdictWord::default(), table: 0, entry: EntryId::NONE };
        let mut may = true;
        packets.each(|lane| {
            let fate = self.results[lane];
            if fate != known && fate.verdict.get() == EntryVerdict::Program {
                known = fate;
                let entry = tables.get(usize::from(fate.table)).and_then(|table| table.get(fate.entry));
                may &= entry.is_none_or(|entry| !entry.program.needs_all);
            }
        });
        may
    }

    #[inline(never)]
    fn can_edit(&self, tables: &[FlowTable], lane: usize, frame: &Frame) -> bool {
        edits_at(tables, self.results[lane]).is_some_and(|edits| edits.fit(frame, &self.parsed[lane].layers))
    }

    /// Returns the packets that are fragments.
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

    /// Returns the port to which packet `lane` is output unchanged, and the end (exclusive) of the run of packets with
    /// this verdict. Returns `None` if the packet has another kind of verdict, or if `lane` is not below `count`.
    #[inline(always)]
    pub(crate) fn direct_run_from(&self, lane: usize, packets: Lanes, count: usize) -> Option<(PortNo, usize)> {
        if lane >= count {
            return None;
        }
        let plain = |lane: usize| packets.without(self.special).has(lane);
        if lane == 0
            && let (alike, verdict) = self.alike
            && let EntryVerdict::Output(port) = verdict.get()
            && alike == Lanes::first(count)
            && self.special.is_empty()
        {
            return Some((port, count));
        }
        let verdict = self.results[lane].verdict;
        let EntryVerdict::Output(port) = verdict.get() else { return None };
        if !plain(lane) {
            return None;
        }
        let mut end = lane + 1;
        while end < count && self.results[end].verdict == verdict && plain(end) {
            end += 1;
        }
        Some((port, end))
    }

    /// Returns the fate of packet `lane`, its output port, and the end (exclusive) of the run of packets with this
    /// fate, if its verdict is [`EntryVerdict::Edit`].
    #[inline(always)]
    pub(crate) fn edited_run_from(
        &self,
        lane: usize,
        packets: Lanes,
        count: usize,
    ) -> Option<(LookupResult, PortNo, usize)> {
        if lane >= count {
            return None;
        }
        let fate = self.results[lane];
        let EntryVerdict::Edit(port) = fate.verdict.get() else { return None };
        let packets = packets.without(self.special);
        let mut end = lane;
        while end < count && packets.has(end) && self.results[end] == fate {
            end += 1;
        }
        (end > lane).then_some((fate, port, end))
    }

    /// Marks the place of packet `lane` as stale, because the general path may leave any data there.
    pub(crate) fn mark_stale(&mut self, lane: usize) {
        self.stale.add(lane);
        self.ipv6 = self.ipv6.without(Lanes(1 << lane));
    }
}

/// Returns the compiled edits of the entry of a lookup result, if there are any.
#[inline(always)]
pub(crate) fn edits_at(tables: &[FlowTable], fate: LookupResult) -> Option<&Edits> {
    let entry = tables.get(usize::from(fate.table))?.get(fate.entry)?;
    entry.program.edits.as_deref().map(|(edits, _)| edits)
}

/// Parse result without any data of a packet.
const BLANK: ParsedHeaders = {
    let mut blank = ParsedHeaders::EMPTY;
    blank.key.words[Field::ActsetOutput.key_position().word] = (PortNo::UNSET.0 as u64) << 32;
    blank
};

/// Parses a frame of any shape. Returns true if it is a packet.
#[inline(never)]
fn parse_other(frame: &Frame, in_port: PortNo, slot: &mut ParsedHeaders) -> bool {
    let is_packet = parse_frame(frame, in_port, slot).is_ok();
    let word = Field::ActsetOutput.key_position().word;
    slot.key.words[word] |= BLANK.key.words[word];
    is_packet
}

#[cfg(test)]
mod tests;

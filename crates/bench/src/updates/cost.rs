//! Measures the cost of one flow-mod, and of one entry in flow statistics, for several numbers of entries: the
//! datapath alone, on this thread.
use crate::entries::EntryMatchKind;
use serde::Serialize;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, RequestBody};
use weir_openflow::model::{FlowCommand, FlowFlags, FlowMod};
use weir_openflow::{Body, Message, Version};
use weir_packet::FramePool;
use weir_units::{Clock as _, Instant, SystemClock};

/// Flow-mods per window, which are timed together.
const WINDOW: u32 = 100;
/// Windows of each kind; the median counts.
const WINDOWS: u32 = 40;
/// Entries per part of a flow statistics reply, as in the engine.
const ENTRIES_PER_PART: u32 = 32;

/// Nanoseconds per flow-mod, including the creation of its message: medians of windows.
#[derive(Debug, Serialize)]
pub(super) struct FlowModCosts {
    pub(super) entries: u32,
    pub(super) add_ns: f64,
    /// Add with the check for overlaps.
    pub(super) add_checked_ns: f64,
    pub(super) modify_strict_ns: f64,
    /// Non-strict modify, with all fields of the entry.
    pub(super) modify_ns: f64,
    pub(super) delete_strict_ns: f64,
    /// Non-strict delete, with all fields of the entry.
    pub(super) delete_ns: f64,
    /// Report of an entry in flow statistics, encoded.
    pub(super) tell_ns: f64,
}

struct FlowModTestbed {
    clock: SystemClock,
    datapath: Datapath,
    pool: FramePool,
    out: DatapathOutput,
}

/// Measures with `entries` entries in the table.
pub(super) fn measure(entries: u32) -> FlowModCosts {
    let clock = SystemClock::start();
    let config = DatapathConfig { max_entries: u32::MAX, ..DatapathConfig::default() };
    let mut bed = FlowModTestbed {
        clock,
        datapath: Datapath::new(config),
        pool: FramePool::default(),
        out: DatapathOutput::default(),
    };
    bed.datapath.channel_up(Instant::ZERO, CHANNEL, Version::V13);
    (0..entries).for_each(|number| bed.send(EntryMatchKind::Udp.add(number, 0)));
    // Measured first, while the table has no gaps of deleted entries.
    let tell_ns = bed.time_telling(ENTRIES_PER_PART.min(entries));
    let all = WINDOW * WINDOWS;
    // Numbers of the entries that are added and deleted; the modified entries are spread over the table.
    let (new, checked) = (entries..entries + all, entries + all..entries + 2 * all);
    let step = (entries / all).max(1);
    let old = (0..all).map(|number| number * step % entries.max(1));
    let command = |command| move |number| FlowMod { command, ..EntryMatchKind::Udp.add(number, 0) };
    let with_check = |number| FlowMod { flags: FlowFlags::CHECK_OVERLAP, ..EntryMatchKind::Udp.add(number, 0) };
    FlowModCosts {
        entries,
        add_ns: bed.time(new.clone(), |number| EntryMatchKind::Udp.add(number, 0)),
        add_checked_ns: bed.time(checked.clone(), with_check),
        modify_strict_ns: bed.time(old.clone(), command(FlowCommand::ModifyStrict)),
        modify_ns: bed.time(old, command(FlowCommand::Modify)),
        delete_strict_ns: bed.time(new, command(FlowCommand::DeleteStrict)),
        delete_ns: bed.time(checked, command(FlowCommand::Delete)),
        tell_ns,
    }
}

const CHANNEL: ChannelId = ChannelId(1);

impl FlowModTestbed {
    fn send(&mut self, flow: FlowMod) {
        let message = Message { xid: 1, body: Body::FlowMod(flow) };
        self.datapath.handle(self.clock.now(), CHANNEL, message, &mut self.pool, &mut self.out);
        debug_assert!(self.out.messages.is_empty(), "{:?}", self.out.messages);
        self.out.messages.clear();
    }

    /// Returns nanoseconds per flow-mod.
    fn time(&mut self, mut numbers: impl Iterator<Item = u32>, flow: impl Fn(u32) -> FlowMod) -> f64 {
        let mut windows: Vec<f64> = Vec::new();
        for _ in 0..WINDOWS {
            let flows: Vec<FlowMod> = numbers.by_ref().take(WINDOW as usize).map(&flow).collect();
            let (count, began) = (flows.len().max(1), self.clock.now());
            flows.into_iter().for_each(|flow| self.send(flow));
            windows.push(self.clock.now().since(began).as_secs_f64() * 1e9 / count as f64);
        }
        median(windows)
    }

    /// Returns nanoseconds per entry of a flow statistics reply, in parts of `most` entries. The table must have at
    /// least `most`.
    fn time_telling(&mut self, most: u32) -> f64 {
        let body = RequestBody::Flow(FlowRequest::all());
        let request = Message { xid: 1, body: Body::MultipartRequest(MultipartRequest { more: false, body }) };
        let (mut windows, mut bytes) = (Vec::new(), Vec::new());
        while windows.len() < WINDOWS as usize
            && let Some(mut reply) = self.datapath.long_reply(CHANNEL, &request)
        {
            let mut more = true;
            while more {
                bytes.clear();
                let began = self.clock.now();
                more = self.datapath.encode_on(began, &mut reply, most as usize, &mut bytes).more;
                // The last part may be shorter, so it does not count.
                if more || windows.is_empty() {
                    windows.push(self.clock.now().since(began).as_secs_f64() * 1e9 / f64::from(most));
                }
            }
        }
        median(windows)
    }
}

fn median(mut windows: Vec<f64>) -> f64 {
    windows.sort_by(f64::total_cmp);
    windows.get(windows.len() / 2).copied().unwrap_or_default()
}

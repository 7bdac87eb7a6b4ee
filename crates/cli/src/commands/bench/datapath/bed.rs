//! A datapath between two ports, as the engine runs it.
use super::case::Case;
use super::entry::{COOKIE, IN, OUT};
use super::{Args, CacheName, LookupName, OrderName, PortsName};
use anyhow::{Context, anyhow, bail};
use std::path::Path;
use std::sync::Arc;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, Lookup, Output, VerdictCache};
use weir_memory::Slab;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{PortDesc, TableId};
use weir_openflow::{Body, Message};
use weir_packet::frame::SMALL_BUFFER;
use weir_packet::{Depot, Frame, FramePool};
use weir_port::null::{NullPort, Order};
use weir_port::pcap::Writer;
use weir_port::{Port, PortError, PortSpec, memory};
use weir_units::{Clock, Instant, SystemClock};

/// Frames taken at once, as by the engine.
pub(super) const BURST: usize = 32;
/// Buffers that are there from the start, as the engine has them unless told otherwise.
const BUFFERS: u32 = 4096;
/// Most flows in a looping capture.
const MAX_CAPTURED: u32 = 100_000;

/// See the module's page.
pub(super) struct Bed {
    clock: SystemClock,
    datapath: Datapath,
    way: Way,
}

/// A way through the datapath, with the ports at its ends: what one thread drives.
pub(super) struct Way {
    /// Whether frames go from port to port without it.
    is_bypassed: bool,
    /// In front of the datapath's ports, where those are ends of something.
    ends: Option<Ends>,
    input: Box<dyn Port>,
    output: Box<dyn Port>,
    pool: FramePool,
    batch: Vec<Frame>,
    out: Output,
}

/// What is at the far ends of memory ports.
struct Ends {
    source: NullPort,
    near: memory::MemoryPort,
    far: memory::MemoryPort,
    sink: NullPort,
    batch: Vec<Frame>,
}

impl Bed {
    /// A datapath without entries.
    ///
    /// # Errors
    /// The ports cannot be made.
    pub(super) fn new(case: &Case, args: &Args, max_entries: u32) -> anyhow::Result<Bed> {
        let (lookup, verdict_cache) = (lookup(args), verdict_cache(args));
        let config = DatapathConfig { max_entries, lookup, verdict_cache, ..DatapathConfig::default() };
        let mut bed =
            Bed { clock: SystemClock::start(), datapath: Datapath::new(config), way: Way::new(case, args, 0)? };
        for (number, port) in [(IN, &bed.way.input), (OUT, &bed.way.output)] {
            let desc = PortDesc::new(number, port.info().mac, port.info().name.clone());
            bed.datapath.add_port(Instant::ZERO, desc, &mut bed.way.out).map_err(|problem| anyhow!("{problem}"))?;
        }
        Ok(bed)
    }

    /// The time on this bed's clock.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Its clock.
    pub(super) fn clock(&self) -> SystemClock {
        self.clock
    }

    /// Its clock, and the datapath with what has been added.
    pub(super) fn into_datapath(self) -> (SystemClock, Datapath) {
        (self.clock, self.datapath)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// The datapath refuses it.
    pub(super) fn add(&mut self, flow: &weir_openflow::model::FlowMod) -> anyhow::Result<()> {
        let now = self.clock.now();
        let added = self.datapath.flow_mod(now, flow);
        added.map_err(|error| anyhow!("the datapath refuses an entry: {}", weir_openflow::text::error_name(error)))
    }

    /// Bursts through the datapath, and what the engine does between packets.
    ///
    /// # Errors
    /// A port fails.
    pub(super) fn run(&mut self, now: Instant, bursts: usize) -> Result<(), PortError> {
        let Bed { datapath, way, .. } = self;
        way.run(now, bursts, |frames, pool, out| datapath.process(now, IN, frames, pool, out))?;
        datapath.expire(now, &mut way.out);
        way.out.messages.clear();
        Ok(())
    }

    /// As [`Way::passed`].
    pub(super) fn passed(&self) -> (u64, u64) {
        self.way.passed()
    }

    /// Packets that the case's entries of a table have counted.
    ///
    /// # Errors
    /// The datapath does not answer.
    pub(super) fn hits(&mut self, table: u8) -> anyhow::Result<u64> {
        hits(&mut self.datapath, self.clock.now(), table)
    }
}

/// Packets that the case's entries of a table have counted.
///
/// # Errors
/// The datapath does not answer.
pub(super) fn hits(datapath: &mut Datapath, now: Instant, table: u8) -> anyhow::Result<u64> {
    let asked = FlowRequest { table: TableId(table), cookie: COOKIE, cookie_mask: u64::MAX, ..FlowRequest::all() };
    let body = Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::Aggregate(asked) });
    let (mut pool, mut out) = (FramePool::default(), Output::default());
    datapath.handle(now, ChannelId::LOCAL, Message { xid: 1, body }, &mut pool, &mut out);
    for (_, message) in out.messages {
        if let Body::MultipartReply(reply) = message.body
            && let ReplyBody::Aggregate(sum) = reply.body
        {
            return Ok(sum.packet_count);
        }
    }
    bail!("the datapath does not say what its entries counted")
}

fn lookup(args: &Args) -> Lookup {
    match args.lookup {
        LookupName::Adaptive => Lookup::Adaptive,
        LookupName::Linear => Lookup::Linear,
    }
}

fn verdict_cache(args: &Args) -> VerdictCache {
    match args.verdict_cache {
        CacheName::Auto => VerdictCache::Auto,
        CacheName::Off => VerdictCache::Off,
        CacheName::On => VerdictCache::On,
    }
}

impl Way {
    /// The way of one of several threads, which brings all of a case's flows; in an order of its own if they are drawn.
    ///
    /// # Errors
    /// The ports cannot be made.
    pub(super) fn new(case: &Case, args: &Args, thread: usize) -> anyhow::Result<Way> {
        let source = source(case, args, thread);
        let (ends, input, output) = match args.ports {
            PortsName::Null => (None, Box::new(source) as Box<dyn Port>, null()?),
            PortsName::Pcap => (None, captured(source, case.flows.count())?, null()?),
            PortsName::Memory => {
                let (near, input) = memory::pair(BURST)?;
                let (output, far) = memory::pair(BURST)?;
                let sink = NullPort::open("sink", &spec("null:sink")?.options)?;
                let ends = Ends { source, near, far, sink, batch: Vec::with_capacity(BURST) };
                (Some(ends), Box::new(input) as Box<dyn Port>, Box::new(output) as Box<dyn Port>)
            }
        };
        Ok(Way {
            is_bypassed: case.tables == 0,
            ends,
            input,
            output,
            pool: pool()?,
            batch: Vec::with_capacity(BURST),
            out: Output::default(),
        })
    }

    /// Bursts from port to port; `process` runs them through the datapath.
    ///
    /// # Errors
    /// A port fails.
    #[inline]
    pub(super) fn run(
        &mut self,
        now: Instant,
        bursts: usize,
        mut process: impl FnMut(&mut Vec<Frame>, &mut FramePool, &mut Output),
    ) -> Result<(), PortError> {
        for _ in 0..bursts {
            if let Some(ends) = &mut self.ends {
                ends.feed(now, &mut self.pool)?;
            }
            self.input.receive(now, &mut self.pool, &mut self.batch, BURST)?;
            if self.is_bypassed {
                self.output.transmit(now, &mut self.pool, &mut self.batch)?;
            } else {
                process(&mut self.batch, &mut self.pool, &mut self.out);
                self.deliver(now)?;
            }
            if let Some(ends) = &mut self.ends {
                ends.drain(now, &mut self.pool)?;
            }
        }
        Ok(())
    }

    fn deliver(&mut self, now: Instant) -> Result<(), PortError> {
        for (number, frames) in &mut self.out.frames {
            match *number {
                OUT => self.output.transmit(now, &mut self.pool, frames)?,
                IN => self.input.transmit(now, &mut self.pool, frames)?,
                _ => frames.drain(..).for_each(|frame| self.pool.give(frame)),
            }
        }
        Ok(())
    }

    /// Packets received and sent so far.
    pub(super) fn passed(&self) -> (u64, u64) {
        (self.input.counters().rx_packets, self.output.counters().tx_packets)
    }
}

/// The port that receives a case's flows.
pub(super) fn source(case: &Case, args: &Args, thread: usize) -> NullPort {
    let order = match args.order {
        OrderName::Cycle => Order::cycle(case.flows.count()),
        OrderName::Random => Order::random(case.flows.count(), args.seed.wrapping_add(thread as u64)),
    };
    NullPort::generating("source", case.flows.clone(), order)
}

impl Ends {
    /// Frames for the datapath.
    fn feed(&mut self, now: Instant, pool: &mut FramePool) -> Result<(), PortError> {
        self.source.receive(now, pool, &mut self.batch, BURST)?;
        self.near.transmit(now, pool, &mut self.batch)
    }

    /// Frees what left the datapath.
    fn drain(&mut self, now: Instant, pool: &mut FramePool) -> Result<(), PortError> {
        self.far.receive(now, pool, &mut self.batch, BURST)?;
        self.sink.transmit(now, pool, &mut self.batch)
    }
}

/// Buffers as the engine's: where a heap puts them, many begin at the same place of a page, and what is written to one holds up what is read
/// of another.
fn pool() -> anyhow::Result<FramePool> {
    let slab = Slab::new(BUFFERS, SMALL_BUFFER).context("frame buffers")?;
    Ok(FramePool::alone(&Arc::new(Depot::of(vec![slab]))))
}

fn null() -> anyhow::Result<Box<dyn Port>> {
    Ok(weir_port::open(&spec("null:sink")?)?)
}

fn spec(text: &str) -> anyhow::Result<PortSpec> {
    Ok(text.parse()?)
}

/// A capture that has each flow once, again and again.
fn captured(source: NullPort, flows: u32) -> anyhow::Result<Box<dyn Port>> {
    let folder = tempfile::tempdir().context("cannot make a directory for the capture")?;
    let file = folder.path().join("flows.pcap");
    capture(source, flows, &file)?;
    // The path goes into text with options, which commas part.
    let path =
        file.to_str().filter(|path| !path.contains(',')).context("the temporary directory's name has a comma")?;
    Ok(weir_port::open(&spec(&format!("pcap:source,in={path},loop=1"))?)?)
}

/// Writes a capture of a port's next frames.
///
/// # Errors
/// There are more than a looping capture may have, or the file cannot be written.
pub(super) fn capture(mut source: NullPort, flows: u32, file: &Path) -> anyhow::Result<()> {
    if flows > MAX_CAPTURED {
        bail!(
            "--ports pcap: found {flows} flows, expected at most {MAX_CAPTURED}: a looping capture is kept in memory"
        );
    }
    let mut writer = Writer::create(file).with_context(|| format!("{}: cannot write", file.display()))?;
    let (mut pool, mut frames) = (FramePool::default(), Vec::new());
    source.receive(Instant::ZERO, &mut pool, &mut frames, flows as usize)?;
    for frame in &frames {
        writer.write(Instant::ZERO, frame.bytes())?;
    }
    Ok(())
}

//! Test bed of the benchmark: a datapath between two ports, driven as the engine drives it.
use super::case::DatapathBenchCase;
use super::entry::{COOKIE, IN, OUT};
use super::{BenchCacheMode, BenchLookupMode, BenchPortKind, DatapathBenchArgs, FlowOrder};
use anyhow::{Context, anyhow, bail};
use std::path::Path;
use std::sync::Arc;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput, LookupMethod, VerdictCacheMode};
use weir_memory::BufferSlab;
use weir_openflow::model::multipart::{FlowRequest, MultipartRequest, ReplyBody, RequestBody};
use weir_openflow::model::{PortDesc, TableId};
use weir_openflow::{Body, Message};
use weir_packet::frame::SMALL_BUFFER;
use weir_packet::{Frame, FramePool, SharedBuffers};
use weir_port::null::{FlowSequence, NullPort};
use weir_port::pcap::PcapFileWriter;
use weir_port::{Port, PortResult, PortSpec, memory};
use weir_units::{Clock, Instant, SystemClock};

/// Frames per burst, as in the engine.
pub(super) const BURST: usize = 32;
/// Frame buffers allocated at the start, the engine's default.
const BUFFERS: u32 = 4096;
/// Maximum number of flows in a looping capture.
const MAX_CAPTURED: u32 = 100_000;

/// A datapath with one [`BenchPacketPath`], driven by the calling thread.
pub(super) struct DatapathTestbed {
    clock: SystemClock,
    datapath: Datapath,
    way: BenchPacketPath,
}

/// A path through the datapath with the ports at its ends, driven by one thread.
pub(super) struct BenchPacketPath {
    /// True if frames are passed from port to port without the datapath.
    is_bypassed: bool,
    /// Far ends of the datapath's ports, if these are memory ports.
    ends: Option<MemoryPortEnds>,
    input: Box<dyn Port>,
    output: Box<dyn Port>,
    pool: FramePool,
    batch: Vec<Frame>,
    out: DatapathOutput,
}

/// Source and sink at the far ends of memory ports.
struct MemoryPortEnds {
    source: NullPort,
    near: memory::MemoryPort,
    far: memory::MemoryPort,
    sink: NullPort,
    batch: Vec<Frame>,
}

impl DatapathTestbed {
    /// Creates a datapath without entries.
    ///
    /// # Errors
    /// The ports cannot be created.
    pub(super) fn new(
        case: &DatapathBenchCase,
        args: &DatapathBenchArgs,
        max_entries: u32,
    ) -> anyhow::Result<DatapathTestbed> {
        let (lookup, verdict_cache) = (lookup(args), verdict_cache(args));
        let config = DatapathConfig { max_entries, lookup, verdict_cache, ..DatapathConfig::default() };
        let mut bed = DatapathTestbed {
            clock: SystemClock::start(),
            datapath: Datapath::new(config),
            way: BenchPacketPath::new(case, args, 0)?,
        };
        for (number, port) in [(IN, &bed.way.input), (OUT, &bed.way.output)] {
            let desc = PortDesc::new(number, port.info().mac, port.info().name.clone());
            bed.datapath.add_port(Instant::ZERO, desc, &mut bed.way.out).map_err(|problem| anyhow!("{problem}"))?;
        }
        Ok(bed)
    }

    /// Returns the time on this bed's clock.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Returns this bed's clock.
    pub(super) fn clock(&self) -> SystemClock {
        self.clock
    }

    /// Returns the clock and the datapath with the entries added so far.
    pub(super) fn into_datapath(self) -> (SystemClock, Datapath) {
        (self.clock, self.datapath)
    }

    /// Adds a flow entry.
    ///
    /// # Errors
    /// The datapath rejects the entry.
    pub(super) fn add(&mut self, flow: &weir_openflow::model::FlowMod) -> anyhow::Result<()> {
        let now = self.clock.now();
        let added = self.datapath.flow_mod(now, flow);
        added.map_err(|error| anyhow!("the datapath refuses an entry: {}", weir_openflow::text::error_name(error)))
    }

    /// Runs bursts through the datapath, followed by the work that the engine does between packets.
    ///
    /// # Errors
    /// A port fails.
    pub(super) fn run(&mut self, now: Instant, bursts: usize) -> PortResult {
        let DatapathTestbed { datapath, way, .. } = self;
        way.run(now, bursts, |frames, pool, out| datapath.process(now, IN, frames, pool, out))?;
        datapath.expire(now, &mut way.out);
        way.out.messages.clear();
        Ok(())
    }

    /// Returns the packets received and sent so far, as [`BenchPacketPath::passed`].
    pub(super) fn passed(&self) -> (u64, u64) {
        self.way.passed()
    }

    /// Returns the packets counted by the case's entries of a table.
    ///
    /// # Errors
    /// The datapath sends no reply.
    pub(super) fn hits(&mut self, table: u8) -> anyhow::Result<u64> {
        hits(&mut self.datapath, self.clock.now(), table)
    }
}

/// Returns the packets counted by the case's entries of a table.
///
/// # Errors
/// The datapath sends no reply.
pub(super) fn hits(datapath: &mut Datapath, now: Instant, table: u8) -> anyhow::Result<u64> {
    let asked = FlowRequest { table: TableId(table), cookie: COOKIE, cookie_mask: u64::MAX, ..FlowRequest::all() };
    let body = Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::Aggregate(asked) });
    let (mut pool, mut out) = (FramePool::default(), DatapathOutput::default());
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

fn lookup(args: &DatapathBenchArgs) -> LookupMethod {
    match args.lookup {
        BenchLookupMode::Adaptive => LookupMethod::Adaptive,
        BenchLookupMode::Linear => LookupMethod::Linear,
    }
}

fn verdict_cache(args: &DatapathBenchArgs) -> VerdictCacheMode {
    match args.verdict_cache {
        BenchCacheMode::Auto => VerdictCacheMode::Auto,
        BenchCacheMode::Off => VerdictCacheMode::Off,
        BenchCacheMode::On => VerdictCacheMode::On,
    }
}

impl BenchPacketPath {
    /// Creates the path of one of several threads. Each thread sends all of a case's flows; drawn flows have a
    /// different order in each thread.
    ///
    /// # Errors
    /// The ports cannot be created.
    pub(super) fn new(
        case: &DatapathBenchCase,
        args: &DatapathBenchArgs,
        thread: usize,
    ) -> anyhow::Result<BenchPacketPath> {
        let source = source(case, args, thread);
        let (ends, input, output) = match args.ports {
            BenchPortKind::Null => (None, Box::new(source) as Box<dyn Port>, null()?),
            BenchPortKind::Pcap => (None, captured(source, case.flows.count())?, null()?),
            BenchPortKind::Memory => {
                let (near, input) = memory::pair(BURST)?;
                let (output, far) = memory::pair(BURST)?;
                let sink = NullPort::open("sink", &spec("null:sink")?.options)?;
                let ends = MemoryPortEnds { source, near, far, sink, batch: Vec::with_capacity(BURST) };
                (Some(ends), Box::new(input) as Box<dyn Port>, Box::new(output) as Box<dyn Port>)
            }
        };
        Ok(BenchPacketPath {
            is_bypassed: case.tables == 0,
            ends,
            input,
            output,
            pool: pool()?,
            batch: Vec::with_capacity(BURST),
            out: DatapathOutput::default(),
        })
    }

    /// Moves bursts from port to port; `process` runs them through the datapath.
    ///
    /// # Errors
    /// A port fails.
    #[inline]
    pub(super) fn run(
        &mut self,
        now: Instant,
        bursts: usize,
        mut process: impl FnMut(&mut Vec<Frame>, &mut FramePool, &mut DatapathOutput),
    ) -> PortResult {
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

    fn deliver(&mut self, now: Instant) -> PortResult {
        for (number, frames) in &mut self.out.frames {
            match *number {
                OUT => self.output.transmit(now, &mut self.pool, frames)?,
                IN => self.input.transmit(now, &mut self.pool, frames)?,
                _ => frames.drain(..).for_each(|frame| self.pool.give(frame)),
            }
        }
        Ok(())
    }

    /// Returns the packets received and sent so far.
    pub(super) fn passed(&self) -> (u64, u64) {
        (self.input.counters().rx_packets, self.output.counters().tx_packets)
    }
}

/// Returns the port that generates a case's flows.
pub(super) fn source(case: &DatapathBenchCase, args: &DatapathBenchArgs, thread: usize) -> NullPort {
    let order = match args.order {
        FlowOrder::Cycle => FlowSequence::cycle(case.flows.count()),
        FlowOrder::Random => FlowSequence::random(case.flows.count(), args.seed.wrapping_add(thread as u64)),
    };
    NullPort::generating("source", case.flows.clone(), order)
}

impl MemoryPortEnds {
    /// Sends a burst of the source's frames towards the datapath.
    fn feed(&mut self, now: Instant, pool: &mut FramePool) -> PortResult {
        self.source.receive(now, pool, &mut self.batch, BURST)?;
        self.near.transmit(now, pool, &mut self.batch)
    }

    /// Frees frames that left the datapath.
    fn drain(&mut self, now: Instant, pool: &mut FramePool) -> PortResult {
        self.far.receive(now, pool, &mut self.batch, BURST)?;
        self.sink.transmit(now, pool, &mut self.batch)
    }
}

/// Returns a pool with the engine's buffers. Buffers from a heap often start at equal offsets of a page, so
/// that a write to one delays reads from another.
fn pool() -> anyhow::Result<FramePool> {
    let slab = BufferSlab::new(BUFFERS, SMALL_BUFFER).context("frame buffers")?;
    Ok(FramePool::single_threaded(&Arc::new(SharedBuffers::of(vec![slab]))))
}

fn null() -> anyhow::Result<Box<dyn Port>> {
    Ok(weir_port::open(&spec("null:sink")?)?)
}

fn spec(text: &str) -> anyhow::Result<PortSpec> {
    Ok(text.parse()?)
}

/// Opens a port that replays a capture with each flow once, in a loop.
fn captured(source: NullPort, flows: u32) -> anyhow::Result<Box<dyn Port>> {
    let folder = tempfile::tempdir().context("cannot make a directory for the capture")?;
    let file = folder.path().join("flows.pcap");
    capture(source, flows, &file)?;
    // The path becomes part of a port specification, in which commas separate options.
    let path =
        file.to_str().filter(|path| !path.contains(',')).context("the temporary directory's name has a comma")?;
    Ok(weir_port::open(&spec(&format!("pcap:source,in={path},loop=1"))?)?)
}

/// Writes a capture of a port's next `flows` frames.
///
/// # Errors
/// There are more flows than a looping capture may have, or the file cannot be written.
pub(super) fn capture(mut source: NullPort, flows: u32, file: &Path) -> anyhow::Result<()> {
    if flows > MAX_CAPTURED {
        bail!(
            "--ports pcap: found {flows} flows, expected at most {MAX_CAPTURED}: a looping capture is kept in memory"
        );
    }
    let mut writer = PcapFileWriter::create(file).with_context(|| format!("{}: cannot write", file.display()))?;
    let (mut pool, mut frames) = (FramePool::default(), Vec::new());
    source.receive(Instant::ZERO, &mut pool, &mut frames, flows as usize)?;
    for frame in &frames {
        writer.write(Instant::ZERO, frame.bytes())?;
    }
    Ok(())
}

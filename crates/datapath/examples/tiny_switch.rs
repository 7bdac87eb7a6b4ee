//! A switch with two ports in memory: receives frames, looks them up, transmits them, and answers its controller.
//!
//! `cargo run -p weir-datapath --example tiny_switch`
use std::error::Error;
use weir_datapath::{ChannelId, Datapath, DatapathConfig, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::{Body, FlowCommand, Message, PortDesc};
use weir_openflow::text::{PrintDetail, parse_flow, print_message};
use weir_packet::craft::FrameBuilder;
use weir_packet::{FramePool, MacAddr, PortNo};
use weir_port::Port;
use weir_port::memory::{MemoryPort, pair};
use weir_units::Instant;

/// Number of the controller's channel.
const CONTROLLER: ChannelId = ChannelId(1);

struct TinySwitch {
    datapath: Datapath,
    ports: Vec<(PortNo, MemoryPort)>,
    pool: FramePool,
    out: DatapathOutput,
}

impl TinySwitch {
    /// Does one round: everything that has arrived is processed, and its results are sent.
    fn run_once(&mut self, now: Instant) -> Result<(), Box<dyn Error>> {
        let mut frames = Vec::new();
        for (number, port) in &mut self.ports {
            port.receive(now, &mut self.pool, &mut frames, 32)?;
            self.datapath.process(now, *number, &mut frames, &mut self.pool, &mut self.out);
        }
        for (number, frames) in &mut self.out.frames {
            if let Some((_, port)) = self.ports.iter_mut().find(|(own, _)| own == number) {
                port.transmit(now, &mut self.pool, frames)?;
            }
        }
        for (_, message) in self.out.messages.drain(..) {
            print!("to the controller: {}", print_message(&message, Version::V13 as u8, PrintDetail::Packets));
        }
        self.datapath.expire(now, &mut self.out);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let now = Instant::ZERO;
    let ((near_1, mut host_1), (near_2, mut host_2)) = (pair(64)?, pair(64)?);
    let mut switch = TinySwitch {
        datapath: Datapath::new(DatapathConfig::default()),
        ports: vec![(PortNo(1), near_1), (PortNo(2), near_2)],
        pool: FramePool::default(),
        out: DatapathOutput::default(),
    };
    for (number, port) in &switch.ports {
        switch.datapath.add_port(
            now,
            PortDesc::new(*number, port.info().mac, format!("p{number}")),
            &mut switch.out,
        )?;
    }

    // A controller connects and adds two entries. What matches none of them is sent to the controller.
    switch.datapath.channel_up(now, CONTROLLER, Version::V13);
    for (xid, entry) in (1..).zip(["priority=1,udp,actions=output:2", "priority=0,actions=controller"]) {
        let message = Message { xid, body: Body::FlowMod(parse_flow(entry, FlowCommand::Add)?) };
        switch.datapath.handle(now, CONTROLLER, message, &mut switch.pool, &mut switch.out);
    }

    // Host 1 sends a datagram and a ping.
    let (a, b) = (MacAddr([2, 0, 0, 0, 0, 0xa]), MacAddr([2, 0, 0, 0, 0, 0xb]));
    let packet = FrameBuilder::ethernet(b, a).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).payload(b"hello");
    let mut sent = vec![packet.clone().udp(1234, 53).frame(), packet.icmp(8, 0, [0; 4]).frame()];
    let mut pool = FramePool::default();
    host_1.transmit(now, &mut pool, &mut sent)?;
    switch.run_once(now)?;

    let mut received = Vec::new();
    host_2.receive(now, &mut pool, &mut received, 32)?;
    println!("host 2 received {} of the 2 frames that host 1 sent", received.len());
    Ok(())
}

//! An application of one's own: a hub, which floods every packet and counts the packets of each switch. A switch's end
//! of the channel is in the program too, so nothing needs a socket.
//!
//! `cargo run -p weir-controller --example own_application`
use std::collections::BTreeMap;
use weir_controller::{ConnectionId, ControllerApp, ControllerHub, ControllerOutbox};
use weir_openflow::Version;
use weir_openflow::model::{
    Action, Body, BufferId, FeaturesReply, FlowCommand, Match, Message, PacketIn, PacketInReason, PacketOut, PortNo,
    TableId,
};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::text::{PrintDetail, parse_flow, print_message};
use weir_packet::Field;
use weir_units::Instant;

/// Floods every packet.
#[derive(Default)]
struct Flooder {
    packets: BTreeMap<ConnectionId, u64>,
}

impl ControllerApp for Flooder {
    fn handle_switch_up(
        &mut self,
        _: Instant,
        switch: ConnectionId,
        _: Version,
        _: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        let entry = parse_flow("priority=0,actions=controller", FlowCommand::Add).expect("the entry is valid");
        out.push((switch, Message { xid: 0, body: Body::FlowMod(entry) }));
    }

    fn handle_message(&mut self, _: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox) {
        let Body::PacketIn(packet) = message.body else { return };
        *self.packets.entry(switch).or_default() += 1;
        let flood = PacketOut {
            buffer_id: packet.buffer_id,
            in_port: packet.in_port().unwrap_or(PortNo::CONTROLLER),
            matching: Match::default(),
            actions: vec![Action::output(PortNo::FLOOD)],
            data: packet.data,
        };
        out.push((switch, Message { xid: 0, body: Body::PacketOut(flood) }));
    }

    fn handle_switch_down(&mut self, _: Instant, switch: ConnectionId) {
        self.packets.remove(&switch);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("packets", self.packets.values().sum())]
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = Instant::ZERO;
    let observer = Box::new(|event: &_| println!("event: {event:?}"));
    let mut hub = ControllerHub::new(Box::new(Flooder::default()), SessionConfig::default(), 8, observer);
    let id = hub.connect(now, "in this process".to_owned())?;
    let mut switch = Session::switch(SessionConfig::default(), now);

    exchange(&mut hub, id, &mut switch, now)?;
    let packet = PacketIn {
        buffer_id: Some(BufferId(1)),
        total_len: 60,
        reason: PacketInReason::NoMatch,
        table: TableId(0),
        cookie: 0,
        matching: Match::default().with(Field::InPort, 3_u32),
        data: Vec::new().into(),
    };
    switch.send(&Message { xid: 0, body: Body::PacketIn(packet) })?;
    exchange(&mut hub, id, &mut switch, now)?;
    println!("{:?}", hub.snapshot().app);
    Ok(())
}

/// Moves bytes between both ends until neither has any. The switch answers only the features request.
fn exchange(
    hub: &mut ControllerHub,
    id: ConnectionId,
    switch: &mut Session,
    now: Instant,
) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        let to_switch = hub.output(id).map(std::mem::take).unwrap_or_default();
        switch.receive(now, &to_switch);
        while let Some(event) = switch.take_event() {
            let SessionEvent::Message(message) = event else { continue };
            print!("switch receives {}", print_message(&message, Version::V15 as u8, PrintDetail::Fields));
            if message.body == Body::FeaturesRequest {
                let features = FeaturesReply { datapath_id: 1, n_tables: 1, ..FeaturesReply::default() };
                switch.send(&Message { xid: message.xid, body: Body::FeaturesReply(features) })?;
            }
        }
        let to_hub = std::mem::take(switch.output());
        hub.receive(now, id, &to_hub);
        if to_switch.is_empty() && to_hub.is_empty() {
            return Ok(());
        }
    }
}

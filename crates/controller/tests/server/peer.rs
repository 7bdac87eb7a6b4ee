//! Simulates a switch's end of a connection for tests, with or without a stream.
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use weir_controller::SwitchEvent;
use weir_controller::hub::Observer;
use weir_openflow::Message;
use weir_openflow::model::{Body, Bytes, FeaturesReply, Match, PacketIn, PacketInReason, TableId};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_packet::craft::FrameBuilder;
use weir_packet::{Field, MacAddr};
use weir_units::Instant;

/// Longest wait for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn features(dpid: u64, auxiliary_id: u8) -> FeaturesReply {
    FeaturesReply { datapath_id: dpid, n_tables: 1, auxiliary_id, ..FeaturesReply::default() }
}

/// Returns a packet-in from an unknown station to an unknown station, which the learning switch floods.
pub(crate) fn packet_in() -> Message {
    let (src, dst) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
    let data = FrameBuilder::ethernet(dst, src).ether_type(0x88b5).payload(&[0; 1000]).build();
    let packet = PacketIn {
        buffer_id: None,
        total_len: u16::try_from(data.len()).unwrap(),
        reason: PacketInReason::NoMatch,
        table: TableId(0),
        cookie: u64::MAX,
        matching: Match::any().with(Field::InPort, 1_u32),
        data: Bytes(data),
    };
    Message { xid: 0, body: Body::PacketIn(packet) }
}

/// Events of switches that the controller has reported.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<SwitchEvent>>>);

impl Heard {
    pub(crate) fn observer(&self) -> Option<Observer> {
        let events = Arc::clone(&self.0);
        Some(Box::new(move |event| events.lock().unwrap().push(event.clone())))
    }

    pub(crate) fn events(&self) -> Vec<SwitchEvent> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the reasons of disconnects and refused connections.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter_map(|event| match event {
                SwitchEvent::Down { reason, .. } | SwitchEvent::Refused { reason, .. } => Some(reason),
                SwitchEvent::Up(_) | SwitchEvent::Role { .. } | SwitchEvent::Auxiliary { .. } => None,
            })
            .collect()
    }
}

/// Switch on a stream that answers the handshake.
pub(crate) struct Peer<S> {
    pub(crate) stream: S,
    pub(crate) session: Session,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    /// Completes the handshake.
    pub(crate) async fn greet(stream: S, features: FeaturesReply) -> Peer<S> {
        let mut peer = Peer { stream, session: Session::switch(SessionConfig::default(), Instant::ZERO) };
        let asked = peer.until(|body| matches!(body, Body::FeaturesRequest)).await.expect("the controller asks");
        peer.send(&Message { xid: asked.xid, body: Body::FeaturesReply(features) }).await;
        peer
    }

    /// Completes the handshake and reads the application's set-up.
    pub(crate) async fn up(stream: S, dpid: u64) -> Peer<S> {
        let mut peer = Peer::greet(stream, features(dpid, 0)).await;
        peer.until(|body| matches!(body, Body::FlowMod(entry) if entry.priority == 0))
            .await
            .expect("a table-miss entry");
        peer
    }

    pub(crate) async fn send(&mut self, message: &Message) {
        self.session.send(message).expect("the session is up");
        self.write().await;
    }

    /// Reads until a wanted message arrives; `None` if the connection ends first.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Body) -> bool) -> Option<Message> {
        let mut buffer = vec![0; 4096];
        loop {
            while let Some(event) = self.session.take_event() {
                match event {
                    SessionEvent::Message(message) if wanted(&message.body) => return Some(message),
                    SessionEvent::Closed { .. } => return None,
                    _ => {}
                }
            }
            self.write().await;
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer))
                .await
                .expect("the controller says something");
            match read {
                Ok(length @ 1..) => self.session.receive(Instant::ZERO, &buffer[..length]),
                _ => return None,
            }
        }
    }

    async fn write(&mut self) {
        let bytes = std::mem::take(self.session.output());
        // A connection closed by the controller is noticed when reading.
        let _ = self.stream.write_all(&bytes).await;
    }
}

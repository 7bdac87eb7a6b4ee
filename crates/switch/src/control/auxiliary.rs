//! Opens auxiliary connections to a controller (OpenFlow 1.3.5, 6.3.7) when the main connection is up, and closes
//! them with it.
//!
//! Auxiliary connections carry packet-ins, distributed over them by flow (`datapath::channels`), and the requests
//! that the controller sends on them. A reply uses the connection of its request. A connection that ends or cannot be
//! opened is tried again as long as the main connection is up; meanwhile its packet-ins use the other connections or
//! the main one.
use super::ControlContext;
use super::channel::{self, ByteStream, ChannelConnectionKind, Disconnection};
use super::connect::{Backoff, connect, report};
use super::registry::ChannelInfo;
use crate::targets::{ControllerSpec, ControllerTarget};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;
use weir_datapath::ChannelId;
use weir_openflow::Version;

/// The main connection that auxiliary connections belong to.
#[derive(Clone)]
pub(super) struct MainConnection {
    pub(super) id: ChannelId,
    pub(super) version: Version,
    /// Becomes true when the main connection ends.
    pub(super) ended: watch::Receiver<bool>,
}

/// Runs a main connection and its auxiliary connections until the main one ends. `reached` is the target of the main
/// connection: the auxiliary ones go to the same address, because a name may stand for several controllers.
pub(super) async fn run_with(
    control: &ControlContext,
    stream: ByteStream,
    info: &Arc<ChannelInfo>,
    spec: &ControllerSpec,
    reached: ControllerTarget,
) -> Disconnection {
    let id = control.registry.next_id(false);
    let (up, comes_up) = watch::channel(None);
    let (end, ended) = watch::channel(false);
    let main = async {
        let ended = channel::run(control.clone(), stream, Arc::clone(info), id, ChannelConnectionKind::Main(up)).await;
        end.send_replace(true);
        ended
    };
    let (main, ()) = tokio::join!(main, open_all(control, spec, reached, id, comes_up, ended));
    main
}

/// Waits for the main connection to come up, then keeps the auxiliary connections open until it ends.
async fn open_all(
    control: &ControlContext,
    spec: &ControllerSpec,
    reached: ControllerTarget,
    id: ChannelId,
    mut comes_up: watch::Receiver<Option<Version>>,
    ended: watch::Receiver<bool>,
) {
    // An error means that the main connection ended without having come up.
    let Ok(version) = comes_up.wait_for(Option::is_some).await.map(|version| *version) else { return };
    let Some(version) = version.filter(|version| *version >= Version::V13) else { return };
    let mut all = JoinSet::new();
    for number in 1..=spec.auxiliaries {
        let main = MainConnection { id, version, ended: ended.clone() };
        let info = control.registry.add(format!("{} auxiliary {number}", spec.target));
        let spec = ControllerSpec { target: reached.clone(), ..spec.clone() };
        all.spawn(keep(control.clone(), spec, info, number, main));
    }
    while all.join_next().await.is_some() {}
}

/// Keeps one auxiliary connection open until the main one ends.
async fn keep(control: ControlContext, spec: ControllerSpec, info: Arc<ChannelInfo>, number: u8, main: MainConnection) {
    let mut ended = main.ended.clone();
    let mut backoff = Backoff::new();
    loop {
        let connected = tokio::select! {
            () = main_has_ended(&mut ended) => break,
            connected = connect(&control, &spec) => connected,
        };
        match connected {
            Ok((stream, _)) => {
                let id = control.registry.next_id(false);
                let part = ChannelConnectionKind::Auxiliary(number, main.clone());
                let ended = channel::run(control.clone(), stream, Arc::clone(&info), id, part).await;
                if ended.was_up {
                    backoff.reset();
                }
                report(&control, &info, &ended.reason);
            }
            Err(error) => report(&control, &info, &weir_tls::explain(&error)),
        }
        tokio::select! {
            () = main_has_ended(&mut ended) => break,
            () = tokio::time::sleep(backoff.next()) => {}
        }
    }
    control.registry.remove(&info);
}

/// Waits until the main connection has ended.
pub(super) async fn main_has_ended(ended: &mut watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}

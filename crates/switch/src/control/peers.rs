//! Controllers that a switch connects to and addresses on which it listens, which change while the switch runs.
use super::{ControlContext, connect, in_band, listen, stopped};
use crate::handle::SwitchError;
use crate::targets::{ControllerSpec, ListenTarget};
use std::net::SocketAddr;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Change of the controllers that a switch connects to, or of the addresses on which it listens.
#[derive(Debug)]
pub(crate) enum PeerChange {
    /// Connect to this controller, too.
    AddController(ControllerSpec),
    /// Connect to this controller no longer.
    RemoveController(ControllerSpec),
    /// Listen on this address, too.
    AddListener(ListenTarget),
    /// Listen on this address no longer, and end the channels that came by it.
    RemoveListener(ListenTarget),
    /// Serve an open listener, which was asked for as this address.
    Serve(ListenTarget, listen::ChannelListener),
}

/// Controllers and listeners of a switch or of a virtual switch, each with the means to end it.
#[derive(Debug, Default)]
pub(super) struct ControlPeers {
    controllers: Vec<(ControllerSpec, RunningPeer)>,
    /// Listeners by the addresses that were asked for.
    listeners: Vec<(ListenTarget, RunningPeer)>,
    /// Addresses for in-band control, if that is on.
    in_band: Option<watch::Sender<Vec<SocketAddr>>>,
}

/// Task of a controller or a listener. Dropping it ends the task.
#[derive(Debug)]
struct RunningPeer {
    _remove: watch::Sender<bool>,
    ended: PeerEnd,
}

/// End of the task of a controller or a listener.
#[derive(Debug)]
pub(super) struct PeerEnd(watch::Receiver<()>);

impl PeerEnd {
    /// Waits until the task has ended; an address on which it listened is free then.
    pub(super) async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl RunningPeer {
    /// Runs `serve` until the result is dropped or the switch stops.
    fn run<F>(control: &ControlContext, tasks: &mut JoinSet<()>, serve: impl FnOnce(ControlContext) -> F) -> RunningPeer
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (remove, mut removed) = watch::channel(false);
        let (ends, ended) = watch::channel(());
        let (stop, stopping) = watch::channel(false);
        let mut all = control.stopping.clone();
        let served = serve(ControlContext { stopping, ..control.clone() });
        tasks.spawn(async move {
            let end = async {
                tokio::select! {
                    () = stopped(&mut all) => {}
                    () = stopped(&mut removed) => {}
                }
                stop.send_replace(true);
            };
            tokio::join!(served, end);
            drop(ends);
        });
        RunningPeer { _remove: remove, ended: PeerEnd(ended) }
    }
}

impl ControlPeers {
    /// Keeps a connection to a controller until it is removed or the switch stops.
    pub(super) fn add_controller(&mut self, control: &ControlContext, spec: ControllerSpec, tasks: &mut JoinSet<()>) {
        let target = spec.clone();
        let running = RunningPeer::run(control, tasks, |control| connect::keep_connected(control, target));
        self.controllers.push((spec, running));
    }

    /// Accepts channels of a listener, which was asked for as `asked`, until it is removed or the switch stops.
    pub(super) fn add_listener(
        &mut self,
        control: &ControlContext,
        asked: ListenTarget,
        listener: listen::ChannelListener,
        tasks: &mut JoinSet<()>,
    ) {
        let running = RunningPeer::run(control, tasks, |control| listen::serve(control, listener));
        self.listeners.push((asked, running));
    }

    /// Carries out a change. Returns the task that ends with it, if there is one.
    ///
    /// # Errors
    /// Fails if the controller or listener to add is there already, needs credentials that the switch does not have, or
    /// an address that is in use; or if the one to remove is not there.
    pub(super) fn change(
        &mut self,
        control: &ControlContext,
        change: PeerChange,
        tasks: &mut JoinSet<()>,
    ) -> Result<Option<PeerEnd>, SwitchError> {
        match change {
            PeerChange::AddController(spec) => {
                if place(&self.controllers, &spec).is_some() {
                    return Err(refused(format!("controller {spec}: the switch connects to it already")));
                }
                check_credentials(control, [&spec], [])?;
                self.check_in_band(&spec)?;
                self.add_controller(control, spec, tasks);
                self.tell_in_band();
                Ok(None)
            }
            PeerChange::RemoveController(spec) => {
                let Some(place) = place(&self.controllers, &spec) else {
                    return Err(refused(format!("controller {spec}: the switch does not connect to it")));
                };
                let (_, removed) = self.controllers.remove(place);
                self.tell_in_band();
                Ok(Some(removed.ended))
            }
            PeerChange::AddListener(target) => {
                if place(&self.listeners, &target).is_some() {
                    return Err(refused(format!("listener {target}: the switch listens there already")));
                }
                check_credentials(control, [], [&target])?;
                let listener = listen::ChannelListener::open(&target)?;
                self.add_listener(control, target, listener, tasks);
                Ok(None)
            }
            PeerChange::RemoveListener(target) => {
                let Some(place) = place(&self.listeners, &target) else {
                    return Err(refused(format!("listener {target}: the switch does not listen there")));
                };
                Ok(Some(self.listeners.remove(place).1.ended))
            }
            PeerChange::Serve(asked, listener) => {
                self.add_listener(control, asked, listener, tasks);
                Ok(None)
            }
        }
    }

    /// Starts to follow the routes to the controllers for in-band control.
    pub(super) fn start_in_band(&mut self, control: &ControlContext, tasks: &mut JoinSet<()>) {
        let (tell, told) = watch::channel(Vec::new());
        self.in_band = Some(tell);
        self.tell_in_band();
        tasks.spawn(in_band::follow(control.clone(), told));
    }

    /// Refuses a further controller that cannot be reached in band, if in-band control is on.
    fn check_in_band(&self, coming: &ControllerSpec) -> Result<(), SwitchError> {
        if self.in_band.is_none() {
            return Ok(());
        }
        let present = self.controllers.iter().map(|(spec, _)| spec);
        crate::in_band::addresses(present.chain([coming])).map(drop)
    }

    /// Tells in-band control the addresses of the controllers, if it is on.
    fn tell_in_band(&self) {
        if let Some(tell) = &self.in_band
            && let Ok(addresses) = crate::in_band::addresses(self.controllers.iter().map(|(spec, _)| spec))
        {
            tell.send_replace(addresses);
        }
    }
}

/// Refuses controllers and listeners that use TLS if the switch has no credentials.
///
/// # Errors
/// [`SwitchError::NoCredentials`] with the first of them.
pub(super) fn check_credentials<'a>(
    control: &ControlContext,
    controllers: impl IntoIterator<Item = &'a ControllerSpec>,
    listeners: impl IntoIterator<Item = &'a ListenTarget>,
) -> Result<(), SwitchError> {
    let controllers = controllers.into_iter().filter(|spec| spec.target.is_tls()).map(ToString::to_string);
    let listeners = listeners.into_iter().filter(|target| target.is_tls()).map(ToString::to_string);
    match controllers.chain(listeners).next() {
        Some(target) if control.credentials.is_none() => Err(SwitchError::NoCredentials { target }),
        _ => Ok(()),
    }
}

fn place<T: PartialEq>(all: &[(T, RunningPeer)], wanted: &T) -> Option<usize> {
    all.iter().position(|(one, _)| one == wanted)
}

fn refused(problem: String) -> SwitchError {
    SwitchError::Request(problem)
}

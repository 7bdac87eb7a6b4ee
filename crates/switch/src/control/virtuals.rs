//! Runs the control side of virtual switches: each has its own channels, listeners and stop signal, which end with
//! it.
use super::peers::{ControlPeers, PeerChange, check_credentials};
use super::registry::ChannelRegistry;
use super::{ControlContext, ControlThreadCommand, listen, stopped};
use crate::engine::virtuals::{NewVirtualSwitch, VirtualId};
use crate::handle::{SwitchError, SwitchIdentity};
use crate::targets::{ControllerSpec, ListenTarget};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use weir_datapath::Datapath;
use weir_slicing::VirtualSwitch;

/// Maximum number of concurrent channels of a virtual switch.
const MAX_CHANNELS: usize = 32;
/// Reason that its channels give when they end with the virtual switch.
const REMOVED: &str = "its virtual switch was removed";

/// All virtual switches.
#[derive(Default)]
pub(crate) struct VirtualSwitchRegistry {
    all: Mutex<Vec<VirtualSwitchEntry>>,
    next: AtomicU64,
}

/// A virtual switch in the list, found by its name.
#[derive(Clone)]
pub(crate) struct VirtualSwitchEntry {
    id: VirtualId,
    pub(crate) identity: SwitchIdentity,
    /// Context whose orders go to the virtual switch's own task, which knows streams and changes of controllers and
    /// listeners only.
    pub(crate) control: ControlContext,
    /// Held during a change, so that two changes do not mix.
    changing: Arc<tokio::sync::Mutex<()>>,
    /// Closed when all parts of the virtual switch have ended.
    gone: watch::Receiver<()>,
}

impl VirtualSwitchRegistry {
    fn locked(&self) -> MutexGuard<'_, Vec<VirtualSwitchEntry>> {
        // Critical sections are single additions and removals, so the list is valid after a panic.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the virtual switch of this name.
    ///
    /// # Errors
    /// A message with the existing names, if there is none.
    pub(crate) fn find(&self, name: &str) -> Result<VirtualSwitchEntry, SwitchError> {
        let all = self.locked();
        all.iter().find(|tenant| tenant.identity.name == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|tenant| tenant.identity.name.as_str()).collect();
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            SwitchError::Request(format!("no virtual switch `{name}`; there are: {there}"))
        })
    }
}

impl VirtualSwitchEntry {
    /// Waits until all parts of the virtual switch have ended; its addresses are free then.
    pub(crate) async fn ended(mut self) {
        while self.gone.changed().await.is_ok() {}
    }
}

/// A virtual switch in the list; dropping this removes it from the list. Each listed virtual switch holds the list
/// through its control side. An entry that stayed would keep both in memory when the control thread is stopped before
/// the virtual switch's task.
struct VirtualRegistration {
    tenant: VirtualSwitchEntry,
}

impl VirtualRegistration {
    fn new(tenant: VirtualSwitchEntry) -> VirtualRegistration {
        tenant.control.virtuals.locked().push(tenant.clone());
        VirtualRegistration { tenant }
    }
}

impl Drop for VirtualRegistration {
    fn drop(&mut self) {
        self.tenant.control.virtuals.locked().retain(|other| other.id != self.tenant.id);
    }
}

/// A virtual switch that has been added but is not served yet.
struct UnservedVirtualSwitch {
    listed: VirtualRegistration,
    listeners: Vec<(ListenTarget, listen::ChannelListener)>,
    controllers: Vec<ControllerSpec>,
    orders: mpsc::UnboundedReceiver<ControlThreadCommand>,
    stop: watch::Sender<bool>,
    lives: watch::Receiver<()>,
    gone: watch::Sender<()>,
}

/// Adds a virtual switch, reports the result to `said`, and serves its controllers until it ends.
pub(super) async fn run(control: ControlContext, spec: VirtualSwitch, said: super::AddVirtualCallback) {
    match begin(&control, spec).await {
        Ok(begun) => {
            said(Ok(super::addresses(&begun.listeners)));
            serve(control, begun).await;
        }
        Err(error) => said(Err(error)),
    }
}

async fn begin(parent: &ControlContext, spec: VirtualSwitch) -> Result<UnservedVirtualSwitch, SwitchError> {
    let controllers: Vec<ControllerSpec> = targets(&spec, "connect", &spec.connect)?;
    let listeners: Vec<ListenTarget> = targets(&spec, "listen", &spec.listen)?;
    check_credentials(parent, &controllers, &listeners)?;
    // If the engine refuses, dropping the listeners closes them.
    let listeners = super::listen(listeners)?;
    let id = VirtualId(parent.virtuals.next.fetch_add(1, Relaxed));
    let (engine, messages) = parent.engine.for_virtual(id);
    let (alive, lives) = watch::channel(());
    let (stop, stopping) = watch::channel(false);
    let (gone, going) = watch::channel(());
    let identity = SwitchIdentity { name: spec.name.clone(), datapath_id: spec.dpid };
    let datapath = Datapath::new(spec.datapath_config(parent.lookup));
    let coming = NewVirtualSwitch { id, spec, datapath, messages, lives: alive };
    parent.engine.call_async(move |engine| engine.add_virtual(coming)).await??;
    let registry = Arc::new(ChannelRegistry::with_room(MAX_CHANNELS));
    let (give_orders, orders) = mpsc::unbounded_channel();
    let control =
        ControlContext { engine, registry, stopping, why_stopped: REMOVED, orders: give_orders, ..parent.clone() };
    let entry = VirtualSwitchEntry { id, identity, control, changing: Arc::default(), gone: going };
    let listed = VirtualRegistration::new(entry);
    Ok(UnservedVirtualSwitch { listed, listeners, controllers, orders, stop, lives, gone })
}

async fn serve(parent: ControlContext, begun: UnservedVirtualSwitch) {
    let UnservedVirtualSwitch { listed, listeners, controllers, mut orders, stop, mut lives, gone } = begun;
    let control = &listed.tenant.control;
    let (mut tasks, mut peers) = (JoinSet::new(), ControlPeers::default());
    for target in controllers {
        peers.add_controller(control, target, &mut tasks);
    }
    for (asked, listener) in listeners {
        peers.add_listener(control, asked, listener, &mut tasks);
    }
    let mut stopping = parent.stopping.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => break,
            // The engine drops its end together with the virtual switch.
            _ = lives.changed() => break,
            Some(order) = orders.recv() => match order {
                ControlThreadCommand::ChangePeers(change, said) => {
                    let changed = peers.change(control, change, &mut tasks);
                    tasks.spawn(super::report(changed, said));
                }
                ControlThreadCommand::Stream(stream) => {
                    tasks.spawn(super::serve_stream(control.clone(), stream));
                }
                // Virtual switches are added and changed by the switch itself.
                ControlThreadCommand::AddVirtual(..) | ControlThreadCommand::ResizeVirtual(..) => {}
            },
            // Collects ended tasks, so that the set does not grow.
            Some(_) = tasks.join_next() => {}
        }
    }
    drop(orders);
    stop.send_replace(true);
    while tasks.join_next().await.is_some() {}
    drop(listed);
    drop(gone);
}

/// Changes a virtual switch, and reports the result to `said`.
pub(super) async fn resize(control: ControlContext, spec: VirtualSwitch, said: super::ResizeVirtualCallback) {
    said(change(&control, spec).await);
}

/// Brings a virtual switch to another specification: rates, buffers and the like in the engine, and the controllers and
/// listeners here. Everything that can be refused is tried before anything changes.
async fn change(parent: &ControlContext, new: VirtualSwitch) -> Result<(), SwitchError> {
    let entry = parent.virtuals.find(&new.name)?;
    let _turn = entry.changing.lock().await;
    let name = new.name.clone();
    let old = parent.engine.call_async(move |engine| engine.virtual_spec(&name)).await??;
    let controllers = |spec: &VirtualSwitch| targets::<ControllerSpec>(spec, "connect", &spec.connect);
    let listeners = |spec: &VirtualSwitch| targets::<ListenTarget>(spec, "listen", &spec.listen);
    let (controllers_added, controllers_removed) = difference(&controllers(&old)?, &controllers(&new)?);
    let (listeners_added, listeners_removed) = difference(&listeners(&old)?, &listeners(&new)?);
    check_credentials(parent, &controllers_added, &listeners_added)?;
    // If the engine refuses, dropping the listeners closes them.
    let opened = super::listen(listeners_added)?;
    parent.engine.call_async(move |engine| engine.resize_virtual(new)).await??;
    let removed = controllers_removed.into_iter().map(PeerChange::RemoveController);
    let removed = removed.chain(listeners_removed.into_iter().map(PeerChange::RemoveListener));
    let added = controllers_added.into_iter().map(PeerChange::AddController);
    let added = added.chain(opened.into_iter().map(|(asked, listener)| PeerChange::Serve(asked, listener)));
    for change in removed.chain(added) {
        // The task that takes the orders ends with the virtual switch.
        entry.control.change_peers(change).await.map_err(|error| match error {
            SwitchError::Stopped => SwitchError::Ended,
            other => other,
        })?;
    }
    Ok(())
}

/// Returns what is only in the new list, each once, and what is only in the old one.
fn difference<T: Clone + PartialEq>(old: &[T], new: &[T]) -> (Vec<T>, Vec<T>) {
    let mut added = Vec::new();
    for one in new.iter().filter(|one| !old.contains(one)) {
        if !added.contains(one) {
            added.push(one.clone());
        }
    }
    (added, old.iter().filter(|one| !new.contains(one)).cloned().collect())
}

/// Parses the addresses of controllers or listeners in `texts`; `what` names the option in errors.
fn targets<T: FromStr<Err = String>>(
    spec: &VirtualSwitch,
    what: &str,
    texts: &[String],
) -> Result<Vec<T>, SwitchError> {
    let wrong =
        |problem: String| SwitchError::Virtual { name: spec.name.clone(), problem: format!("{what}: {problem}") };
    texts.iter().map(|text| text.parse().map_err(wrong)).collect()
}

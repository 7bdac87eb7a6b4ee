//! Runs the control side of virtual switches: each has its own channels, listeners and stop signal, which end with
//! it.
use super::registry::ChannelRegistry;
use super::{ControlContext, connect, listen, stopped};
use crate::engine::virtuals::{NewVirtualSwitch, VirtualId};
use crate::handle::{SwitchError, SwitchIdentity};
use crate::targets::{ControllerSpec, ListenTarget};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
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
    pub(crate) control: ControlContext,
    /// Addresses on which the virtual switch listens, with the TCP ports that the system assigned.
    pub(crate) listeners: Vec<ListenTarget>,
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
    listeners: Vec<listen::ChannelListener>,
    controllers: Vec<ControllerSpec>,
    stop: watch::Sender<bool>,
    lives: watch::Receiver<()>,
    gone: watch::Sender<()>,
}

/// Adds a virtual switch, reports the result to `said`, and serves its controllers until it ends.
pub(super) async fn run(control: ControlContext, spec: VirtualSwitch, said: super::AddVirtualCallback) {
    match begin(&control, spec).await {
        Ok(begun) => {
            said(Ok(begun.listed.tenant.listeners.clone()));
            serve(control, begun).await;
        }
        Err(error) => said(Err(error)),
    }
}

async fn begin(parent: &ControlContext, spec: VirtualSwitch) -> Result<UnservedVirtualSwitch, SwitchError> {
    let controllers: Vec<ControllerSpec> = targets(&spec, "connect", &spec.connect)?;
    let listeners: Vec<ListenTarget> = targets(&spec, "listen", &spec.listen)?;
    let tls = controllers.iter().filter(|spec| spec.target.is_tls()).map(ToString::to_string);
    let tls = tls.chain(listeners.iter().filter(|target| target.is_tls()).map(ToString::to_string)).next();
    if let (Some(target), None) = (tls, &parent.credentials) {
        return Err(SwitchError::NoCredentials { target });
    }
    // If the engine refuses, dropping the listeners closes them.
    let (listeners, addresses) = super::listen(&listeners)?;
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
    let control = ControlContext { engine, registry, stopping, why_stopped: REMOVED, ..parent.clone() };
    let listed =
        VirtualRegistration::new(VirtualSwitchEntry { id, identity, control, listeners: addresses, gone: going });
    Ok(UnservedVirtualSwitch { listed, listeners, controllers, stop, lives, gone })
}

async fn serve(parent: ControlContext, begun: UnservedVirtualSwitch) {
    let UnservedVirtualSwitch { listed, listeners, controllers, stop, mut lives, gone } = begun;
    let mut tasks = JoinSet::new();
    for target in controllers {
        tasks.spawn(connect::keep_connected(listed.tenant.control.clone(), target));
    }
    for listener in listeners {
        tasks.spawn(listen::serve(listed.tenant.control.clone(), listener));
    }
    let mut stopping = parent.stopping.clone();
    tokio::select! {
        biased;
        () = stopped(&mut stopping) => {}
        // The engine drops its end together with the virtual switch.
        _ = lives.changed() => {}
    }
    stop.send_replace(true);
    while tasks.join_next().await.is_some() {}
    drop(listed);
    drop(gone);
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

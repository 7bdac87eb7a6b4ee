//! Tells the engine through which routers the controllers are reached in band, and which controllers there are.
//!
//! The kernel's routing table changes when the local port gets its address, by DHCP or by hand, so the routes are asked
//! for again and again.
use super::{ControlContext, stopped};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::sync::watch;
use weir_port::netlink;

/// Interval at which the routes to the controllers are looked up.
const INTERVAL: Duration = Duration::from_secs(1);

/// Follows the controllers and the routes to them until the switch stops.
pub(super) async fn follow(control: ControlContext, mut controllers: watch::Receiver<Vec<SocketAddr>>) {
    let mut stopping = control.stopping.clone();
    let mut told = Vec::new();
    loop {
        let wanted = controllers.borrow_and_update().clone();
        let routers = routers(&wanted);
        if routers != told {
            told.clone_from(&routers);
            control.engine.post(move |engine| engine.set_in_band_next_hops(&routers));
        }
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => return,
            changed = controllers.changed() => match changed {
                Ok(()) => {
                    let wanted = controllers.borrow().clone();
                    control.engine.post(move |engine| engine.set_in_band_controllers(&wanted));
                }
                Err(_) => return,
            },
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Returns the routers through which the controllers are reached, each once.
fn routers(controllers: &[SocketAddr]) -> Vec<IpAddr> {
    let mut routers = Vec::new();
    for controller in controllers {
        match netlink::next_hop(controller.ip()) {
            Ok(Some(router)) if !routers.contains(&router) => routers.push(router),
            Ok(_) => {}
            Err(error) => tracing::debug!("the route to {controller} cannot be looked up: {error}"),
        }
    }
    routers
}

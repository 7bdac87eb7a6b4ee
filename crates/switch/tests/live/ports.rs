//! Ports that are added, removed, vanish and return.
use crate::bed::{Controller, forward, port, switch, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_openflow::Body;
use weir_openflow::model::PortNo;
use weir_openflow::model::port::PortStatusReason;
use weir_packet::{Frame, FramePool};
use weir_port::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult};
use weir_switch::{PortConfig, SoftwareSwitchConfig, SwitchError};
use weir_units::Instant;

/// A port whose device can be pulled out.
struct Fragile {
    port: Box<dyn Port>,
    pulled: Arc<AtomicBool>,
}

impl Fragile {
    fn check(&self) -> PortResult {
        let gone = || PortError::Gone { spec: self.port.info().spec.clone() };
        if self.pulled.load(Ordering::Relaxed) { Err(gone()) } else { Ok(()) }
    }
}

impl Port for Fragile {
    fn info(&self) -> &PortInfo {
        self.port.info()
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        self.check()?;
        self.port.receive(now, pool, batch, max)
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.check()?;
        self.port.transmit(now, pool, frames)
    }

    fn link(&mut self) -> LinkState {
        self.port.link()
    }

    fn counters(&self) -> FrameCounters {
        self.port.counters()
    }
}

/// A controller is told that the port vanished and returned; other ports forward all the while.
#[tokio::test]
async fn a_port_that_vanishes_comes_back_with_its_device() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let [a, b] = &mut hosts[..] else { unreachable!() };
    let pulled = Arc::new(AtomicBool::new(false));
    let (config, _host) = port(3);
    let fragile = Fragile { port: config.port, pulled: Arc::clone(&pulled) };
    let reopen_pulled = Arc::clone(&pulled);
    let reopen = move || {
        let (config, _) = port(3);
        let fragile = Fragile { port: config.port, pulled: Arc::clone(&reopen_pulled) };
        fragile.check().map(|()| Box::new(fragile) as Box<dyn Port>)
    };
    let fragile = PortConfig { number: None, port: Box::new(fragile), reopen: Some(Box::new(reopen)) };
    assert_eq!(switch.add_port(fragile).unwrap(), PortNo(3));
    switch.flow_mod(forward(1, 2)).unwrap();
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.barrier().await;
    let is_present = || switch.snapshot().unwrap().ports[2].present;
    for _ in 0..2 {
        pulled.store(true, Ordering::Relaxed);
        assert_eq!(status(&mut controller).await, (PortStatusReason::Delete, PortNo(3)));
        assert!(!is_present());
        a.send(b, 5);
        assert_eq!(b.tag(), 5);
        pulled.store(false, Ordering::Relaxed);
        assert_eq!(status(&mut controller).await, (PortStatusReason::Add, PortNo(3)));
        assert!(is_present());
    }
    // An absent port can be removed, and then does not return.
    pulled.store(true, Ordering::Relaxed);
    status(&mut controller).await;
    switch.remove_port(PortNo(3)).unwrap();
    assert_eq!(switch.snapshot().unwrap().ports.len(), 2);
}

async fn status(controller: &mut Controller<tokio::io::DuplexStream>) -> (PortStatusReason, PortNo) {
    controller
        .expect(|message| match message.body {
            // Changes of the new port's link are reported as well; they are skipped.
            Body::PortStatus(status) if status.reason != PortStatusReason::Modify => {
                Some((status.reason, status.desc.port_no))
            }
            _ => None,
        })
        .await
}

#[tokio::test]
async fn ports_are_added_and_removed_while_frames_flow() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let [a, b] = &mut hosts[..] else { unreachable!() };
    switch.flow_mod(forward(1, 2)).unwrap();
    for tag in 0..50 {
        let (config, _host) = port(9);
        assert_eq!(switch.add_port(config).unwrap(), PortNo(9));
        a.send(b, tag);
        assert_eq!(b.tag(), tag);
        switch.remove_port(PortNo(9)).unwrap();
    }
    let (taken, _host) = port(2);
    let error = switch.add_port(taken).unwrap_err().to_string();
    assert_eq!(error, "port 2: the number is taken by memory:p2");
    let error = switch.remove_port(PortNo(7)).unwrap_err();
    assert!(matches!(error, SwitchError::NoPort { .. }));
    assert_eq!(error.to_string(), "no port `7`; there are: 1=p1, 2=p2");
}

/// A port without a number gets the lowest free one.
#[tokio::test]
async fn free_numbers_are_found() {
    let (switch, _hosts) = switch(3, SoftwareSwitchConfig::default());
    switch.remove_port(PortNo(2)).unwrap();
    for expected in [2, 4] {
        let (config, _) = port(50);
        assert_eq!(switch.add_port(PortConfig { number: None, ..config }).unwrap(), PortNo(expected));
    }
}

/// A link that goes down is detected and reported.
#[tokio::test]
async fn a_link_that_goes_down_is_told() {
    let (switch, mut hosts) = switch(2, SoftwareSwitchConfig::default());
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.barrier().await;
    hosts.pop();
    let desc = controller.expect(|message| match message.body {
        Body::PortStatus(status) if status.reason == PortStatusReason::Modify => Some(status.desc),
        _ => None,
    });
    let desc = desc.await;
    assert_eq!((desc.port_no, desc.state & 1), (PortNo(2), 1), "link down");
    until(|| !switch.snapshot().unwrap().ports[1].link_up).await;
}

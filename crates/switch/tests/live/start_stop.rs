//! Starting and stopping under load.
use crate::bed::{Controller, PATIENCE, port, punt, switch};
use std::time::Duration;
use weir_openflow::Body;
use weir_switch::{ListenTarget, SocketFile, SoftwareSwitch, SoftwareSwitchConfig};
use weir_units::{Clock, Instant, SystemClock};

/// Stopping takes less than a second with a stalled controller, an unreachable one, and packets arriving.
#[tokio::test]
async fn stopping_takes_less_than_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["ctl.sock", "of.sock"].map(|name| dir.path().join(name));
    let config = SoftwareSwitchConfig {
        listeners: vec!["ptcp:0".parse().unwrap(), ListenTarget::Unix(paths[1].clone())],
        controllers: vec!["tcp:127.0.0.1:1".parse().unwrap()],
        control_socket: Some(SocketFile::bind(&paths[0]).unwrap()),
        ..SoftwareSwitchConfig::default()
    };
    let (switch, mut hosts) = switch(2, config);
    let [a, b] = &mut hosts[..] else { unreachable!() };
    let mut stalled = Controller::embedded(&switch, 4096).await;
    stalled.send(Body::FlowMod(punt())).await;
    stalled.barrier().await;
    let mut connected = Controller::up(tokio::net::UnixStream::connect(&paths[1]).await.unwrap()).await;
    connected.barrier().await;
    for tag in 0..3000 {
        a.send(b, tag);
    }
    let clock = SystemClock::start();
    let stopped = tokio::task::spawn_blocking(move || switch.stop());
    tokio::time::timeout(PATIENCE, stopped).await.unwrap().unwrap();
    let took = clock.now().since(Instant::ZERO);
    assert!(took < Duration::from_secs(1), "{took:?}");
    connected.closed().await;
    assert!(paths.iter().all(|path| !path.exists()), "a socket stayed behind");
}

#[test]
fn what_cannot_start_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listeners = vec![ListenTarget::Tcp(taken.local_addr().unwrap())];
    let control_socket = Some(SocketFile::bind(&path).unwrap());
    let config = SoftwareSwitchConfig { listeners, control_socket, ..SoftwareSwitchConfig::default() };
    let error = SoftwareSwitch::start(config).err().unwrap().to_string();
    assert!(error.contains("another program listens there"), "{error}");
    assert!(!path.exists());
    let ports = vec![port(1).0, port(1).0];
    let error = SoftwareSwitch::start(SoftwareSwitchConfig { ports, ..SoftwareSwitchConfig::default() })
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("the number is taken"), "{error}");
}

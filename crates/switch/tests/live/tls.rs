//! Channels over TLS, with the switch as client and as server.
use crate::bed::{Controller, forward, switch, until};
use tokio::net::{TcpListener, TcpStream};
use weir_openflow::Body;
use weir_switch::{ControllerSpec, ListenTarget, SoftwareSwitch, SoftwareSwitchConfig, TlsFiles};
use weir_testing::{CertificateAuthority, KeyAndCertificate};
use weir_tls::Credentials;

fn files(party: &KeyAndCertificate, ca: &CertificateAuthority) -> TlsFiles {
    TlsFiles { private_key: party.private_key.clone(), certificate: party.certificate.clone(), ca_cert: ca.ca_cert() }
}

/// Returns the reason why the switch's connection to its controller last ended; empty if it has not ended yet.
fn last_error(switch: &weir_switch::SwitchHandle) -> String {
    let channels = switch.snapshot().unwrap().channels;
    channels.first().and_then(|channel| channel.last_error.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_controller_and_a_tool_are_verified_and_served() {
    let ca = CertificateAuthority::new();
    let controllers = Credentials::load(files(&ca.sign("c1.test"), &ca)).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = SoftwareSwitchConfig {
        controllers: vec![format!("ssl:{address},peer-name=c1.test").parse().unwrap()],
        listeners: vec!["pssl:0:127.0.0.1".parse().unwrap()],
        tls: Some(files(&ca.sign("s1.test"), &ca)),
        ..SoftwareSwitchConfig::default()
    };
    let (switch, _hosts) = switch(1, config);
    let stream = controllers.accept(listener.accept().await.unwrap().0).await.unwrap();
    let mut controller = Controller::up(stream).await;
    controller.send(Body::FlowMod(forward(1, 1))).await;
    controller.barrier().await;
    let ListenTarget::Ssl(listening) = switch.listeners()[0] else { panic!("{:?}", switch.listeners()) };
    let stream = TcpStream::connect(listening).await.unwrap();
    let stream = controllers.connect(stream, listening.ip(), None).await.unwrap();
    Controller::up(stream).await.barrier().await;
    assert_eq!(switch.snapshot().unwrap().entries(), 1);
}

/// Accepts connections as a controller until `is_told` returns true. Each TLS handshake must fail, so that no byte of
/// OpenFlow is exchanged. Several connections may be needed, because the switch may not read the reason if a
/// connection is reset.
async fn refuses(listener: &TcpListener, controller: &Credentials, is_told: impl FnMut() -> bool) {
    let accept = async {
        loop {
            assert!(controller.accept(listener.accept().await.unwrap().0).await.is_err());
        }
    };
    tokio::select! {
        () = accept => {}
        () = until(is_told) => {}
    }
}

#[tokio::test]
async fn controllers_that_do_not_fit_are_refused_with_the_reason() {
    let (ca, others) = (CertificateAuthority::new(), CertificateAuthority::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let config = |options: &str| SoftwareSwitchConfig {
        controllers: vec![format!("ssl:{address}{options}").parse::<ControllerSpec>().unwrap()],
        tls: Some(files(&ca.sign("s1.test"), &ca)),
        ..SoftwareSwitchConfig::default()
    };
    let stranger = Credentials::load(files(&others.sign("c1.test"), &ca)).unwrap();
    let (refusing, _) = switch(1, config(""));
    refuses(&listener, &stranger, || last_error(&refusing).contains("not signed by the CA")).await;
    drop(refusing);

    let other_name = Credentials::load(files(&ca.sign("c2.test"), &ca)).unwrap();
    let (refusing, _) = switch(1, config(",peer-name=c1.test"));
    refuses(&listener, &other_name, || last_error(&refusing).contains("not for c1.test")).await;
    drop(refusing);

    // Here the controller refuses, because it trusts another CA.
    let distrusting = Credentials::load(files(&ca.sign("c1.test"), &others)).unwrap();
    let (refused, _) = switch(1, config(""));
    refuses(&listener, &distrusting, || last_error(&refused).contains("the peer refused this end's certificate")).await;
    drop(refused);

    // No TLS at all.
    let (refusing, _) = switch(1, config(""));
    let (mut plain, _) = listener.accept().await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, &[4, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
    until(|| last_error(&refusing).contains("does not speak TLS")).await;
    assert_eq!(refusing.snapshot().unwrap().channels[0].connects, 0);
}

#[tokio::test]
async fn a_certificate_is_renewed_while_the_switch_runs() {
    let (old, new) = (CertificateAuthority::new(), CertificateAuthority::new());
    let party = old.sign("s1.test");
    let config = SoftwareSwitchConfig {
        listeners: vec!["pssl:0:127.0.0.1".parse().unwrap()],
        tls: Some(files(&party, &old)),
        ..SoftwareSwitchConfig::default()
    };
    let (switch, _) = switch(1, config);
    let ListenTarget::Ssl(address) = switch.listeners()[0] else { unreachable!() };
    let connect = async |credentials: &Credentials| {
        let stream = TcpStream::connect(address).await.unwrap();
        credentials.connect(stream, address.ip(), None).await
    };
    let before = Credentials::load(files(&old.sign("c.test"), &old)).unwrap();
    let after = Credentials::load(files(&new.sign("c.test"), &new)).unwrap();
    let mut up = Controller::up(connect(&before).await.unwrap()).await;
    assert!(connect(&after).await.is_err(), "it trusts another CA");
    let renewed = new.sign("s1.test");
    for (from, to) in [
        (&renewed.private_key, &party.private_key),
        (&renewed.certificate, &party.certificate),
        (&new.ca_cert(), &old.ca_cert()),
    ] {
        std::fs::copy(from, to).unwrap();
    }
    Controller::up(connect(&after).await.unwrap()).await.barrier().await;
    up.barrier().await;
}

#[test]
fn a_switch_without_credentials_says_what_tls_needs() {
    for (controllers, listeners) in
        [(vec!["ssl:127.0.0.1:1".parse().unwrap()], Vec::new()), (Vec::new(), vec!["pssl:0".parse().unwrap()])]
    {
        let config = SoftwareSwitchConfig { controllers, listeners, ..SoftwareSwitchConfig::default() };
        let error = SoftwareSwitch::start(config).err().unwrap().to_string();
        assert!(error.contains("--private-key, --certificate, --ca-cert"), "{error}");
    }
}

/// Checks that a peer that sends OpenFlow without TLS to a TLS listener is disconnected at once.
#[tokio::test]
async fn a_plain_peer_of_a_tls_listener_is_closed() {
    let ca = CertificateAuthority::new();
    let config = SoftwareSwitchConfig {
        listeners: vec!["pssl:0:127.0.0.1".parse().unwrap()],
        tls: Some(files(&ca.sign("s1.test"), &ca)),
        ..SoftwareSwitchConfig::default()
    };
    let (switch, _) = switch(1, config);
    let ListenTarget::Ssl(address) = switch.listeners()[0] else { unreachable!() };
    let mut plain = TcpStream::connect(address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut plain, &[4, 0, 0, 8, 0, 0, 0, 1]).await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut plain, &mut rest).await;
    until(|| switch.snapshot().unwrap().channels.is_empty()).await;
}

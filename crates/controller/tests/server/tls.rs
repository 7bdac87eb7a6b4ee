//! Tests switches over TLS.
use crate::peer::{Heard, Peer};
use crate::sockets::block_on;
use tokio::net::TcpStream;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{Controller, ControllerConfig, ListenAddress};
use weir_testing::{CertificateAuthority, KeyAndCertificate};
use weir_tls::{Credentials, TlsFiles};

fn files(party: KeyAndCertificate, ca: &CertificateAuthority) -> TlsFiles {
    TlsFiles { private_key: party.private_key, certificate: party.certificate, ca_cert: ca.ca_cert() }
}

fn start(tls: Option<TlsFiles>, heard: &Heard) -> std::io::Result<Controller> {
    let listen = vec!["ssl:127.0.0.1:0".parse().unwrap()];
    let config = ControllerConfig { listen, tls, observer: heard.observer(), ..ControllerConfig::default() };
    Controller::start(Box::new(LearningSwitch::new(LearningConfig::default())), config)
}

#[test]
fn switches_show_a_certificate_of_the_ca_or_are_refused() {
    let (ca, others) = (CertificateAuthority::new(), CertificateAuthority::new());
    let heard = Heard::default();
    let controller = start(Some(files(ca.sign("c1.test"), &ca)), &heard).unwrap();
    let ListenAddress::Ssl(address) = controller.addresses()[0] else { panic!("{:?}", controller.addresses()) };
    block_on(async {
        let good = Credentials::load(files(ca.sign("s1.test"), &ca)).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let stream = good.connect(stream, address.ip(), None).await.unwrap();
        let _peer = Peer::up(stream, 7).await;
        assert!(controller.snapshot().switches[0].peer.starts_with("ssl:127.0.0.1:"));
        let bad = Credentials::load(files(others.sign("x.test"), &ca)).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        // In TLS 1.3 the refusal may arrive after the connecting end's part of the handshake.
        let _stream = bad.connect(stream, address.ip(), None).await;
        while heard.reasons().is_empty() {
            tokio::task::yield_now().await;
        }
        let reasons = heard.reasons();
        assert!(reasons[0].contains("the peer's certificate is not signed by the CA"), "{reasons:?}");
    });
}

#[test]
fn without_certificates_there_is_no_tls() {
    let error = start(None, &Heard::default()).err().unwrap().to_string();
    assert!(error.contains("ssl:127.0.0.1:0: TLS needs a private key"), "{error}");
}

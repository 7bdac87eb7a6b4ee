//! Handshakes between two ends over a stream in memory: which peers are accepted, and what both ends report
//! otherwise.
use std::io;
use std::path::PathBuf;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use weir_testing::{CertificateAuthority, KeyAndCertificate};
use weir_tls::{CredentialError, Credentials, ServerName, TlsFiles, TlsStream, explain};

fn files(party: &KeyAndCertificate, ca_cert: PathBuf) -> TlsFiles {
    TlsFiles { private_key: party.private_key.clone(), certificate: party.certificate.clone(), ca_cert }
}

fn credentials(ca: &CertificateAuthority, name: &str) -> Credentials {
    Credentials::load(files(&ca.sign(name), ca.ca_cert())).unwrap()
}

type Shaken = io::Result<TlsStream<DuplexStream>>;

/// Performs a handshake, then sends a byte from the listening end: with TLS 1.3 a refusal reaches the connecting end
/// only when it reads.
async fn meet(
    connecting: &Credentials,
    listening: &Credentials,
    name: Option<&str>,
) -> (Result<u8, String>, Result<(), String>) {
    let (here, there) = tokio::io::duplex(64 << 10);
    let name = name.map(|name| ServerName::try_from(name.to_owned()).unwrap());
    let client = async {
        let mut stream = connecting.connect(here, [127, 0, 0, 1].into(), name.as_ref()).await?;
        stream.read_u8().await
    };
    let server = async {
        let stream: Shaken = listening.accept(there).await;
        stream?.write_u8(7).await
    };
    let (heard, said) = tokio::join!(client, server);
    (heard.map_err(|error| explain(&error)), said.map_err(|error| explain(&error)))
}

#[tokio::test]
async fn ends_of_one_ca_accept_each_other_whatever_their_names() {
    let ca = CertificateAuthority::new();
    let (switch, controller) = (credentials(&ca, "s1.test"), credentials(&ca, "c1.test"));
    assert_eq!(meet(&switch, &controller, None).await, (Ok(7), Ok(())));
    assert_eq!(meet(&switch, &controller, Some("c1.test")).await, (Ok(7), Ok(())));
    let (refused, _) = meet(&switch, &controller, Some("c2.test")).await;
    let refused = refused.unwrap_err();
    assert!(refused.contains("the peer's certificate is for DnsName(\"c1.test\"), not for c2.test"), "{refused}");
}

/// Arrangement of `ovs-pki`: one CA for switches, one for controllers.
#[tokio::test]
async fn each_end_may_have_a_ca_of_its_own() {
    let (switches, controllers) = (CertificateAuthority::new(), CertificateAuthority::new());
    let switch = Credentials::load(files(&switches.sign("s1.test"), controllers.ca_cert())).unwrap();
    let controller = Credentials::load(files(&controllers.sign("c1.test"), switches.ca_cert())).unwrap();
    assert_eq!(meet(&switch, &controller, None).await, (Ok(7), Ok(())));
}

#[tokio::test]
async fn a_peer_of_another_ca_is_refused_and_both_ends_say_so() {
    for others in [CertificateAuthority::new(), CertificateAuthority::named("the CA")] {
        stranger_is_refused(&CertificateAuthority::named("the CA"), &others).await;
    }
}

async fn stranger_is_refused(ours: &CertificateAuthority, others: &CertificateAuthority) {
    let stranger = Credentials::load(files(&others.sign("x.test"), ours.ca_cert())).unwrap();
    let controller = credentials(ours, "c1.test");
    let (client, server) = meet(&stranger, &controller, None).await;
    let (client, server) = (client.unwrap_err(), server.unwrap_err());
    assert!(server.contains("refused: the peer's certificate is not signed by the CA"), "{server}");
    assert!(client.contains("the peer refused this end's certificate"), "{client}");
    // The other way round: the listening end is the stranger.
    let (client, server) = meet(&controller, &stranger, None).await;
    let (client, server) = (client.unwrap_err(), server.unwrap_err());
    assert!(client.contains("refused: the peer's certificate is not signed by the CA"), "{client}");
    assert!(server.contains("the peer refused this end's certificate: it is not signed by the CA"), "{server}");
}

#[tokio::test]
async fn a_peer_without_certificate_is_refused() {
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
    let ca = CertificateAuthority::new();
    let controller = credentials(&ca, "c1.test");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca.ca_cert()).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let (here, there) = tokio::io::duplex(64 << 10);
    let bare = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let client = async { bare.connect("c1.test".try_into().unwrap(), here).await?.read_u8().await };
    let (client, server) = tokio::join!(client, controller.accept(there));
    let (client, server) = (explain(&client.unwrap_err()), explain(&server.unwrap_err()));
    assert!(server.contains("refused: the peer shows no certificate"), "{server}");
    assert_eq!(client, "the peer refused this end's certificate: there is none");
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_is_told_apart() {
    let ca = CertificateAuthority::new();
    let credentials = credentials(&ca, "c1.test");
    let hello = [4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 18];
    for plain in [&hello[..], b"GET / HTTP/1.1\r\n\r\n"] {
        let (mut here, there) = tokio::io::duplex(64 << 10);
        here.write_all(plain).await.unwrap();
        let error = explain(&credentials.accept(there).await.unwrap_err());
        assert!(error.contains("does not speak TLS"), "{error}");
        let (mut here, there) = tokio::io::duplex(64 << 10);
        here.write_all(plain).await.unwrap();
        let error = explain(&credentials.connect(there, [127, 0, 0, 1].into(), None).await.unwrap_err());
        assert!(error.contains("does not speak TLS"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_nothing_has_its_time() {
    let ca = CertificateAuthority::new();
    let (_silent, there) = tokio::io::duplex(64);
    let error = explain(&credentials(&ca, "c1.test").accept(there).await.unwrap_err());
    assert_eq!(error, "no TLS handshake within 10s");
}

/// Certificates are replaced while the end runs; unusable files are ignored until they are usable.
#[tokio::test]
async fn files_are_read_again_when_they_change() {
    let (old, new) = (CertificateAuthority::new(), CertificateAuthority::new());
    let (switch, renewed) = (credentials(&old, "s1.test"), credentials(&new, "s1.test"));
    let party = old.sign("c1.test");
    let controller = Credentials::load(files(&party, old.ca_cert())).unwrap();
    assert_eq!(meet(&switch, &controller, None).await, (Ok(7), Ok(())));
    std::fs::write(&party.private_key, "-----BEGIN RUBBISH-----\n").unwrap();
    assert_eq!(meet(&switch, &controller, None).await, (Ok(7), Ok(())), "what was read before stays in use");
    let replaced = new.sign("c1.test");
    for (from, to) in [
        (replaced.private_key, party.private_key),
        (replaced.certificate, party.certificate),
        (new.ca_cert(), old.ca_cert()),
    ] {
        std::fs::copy(from, to).unwrap();
    }
    assert_eq!(meet(&renewed, &controller, None).await, (Ok(7), Ok(())));
    assert!(meet(&switch, &controller, None).await.1.is_err(), "the old CA is not trusted any more");
}

#[test]
fn unusable_files_are_named_with_what_is_wrong() {
    let ca = CertificateAuthority::new();
    let (good, other) = (ca.sign("a.test"), ca.sign("b.test"));
    let garbage = ca.folder().join("garbage.pem");
    std::fs::write(&garbage, [0xff; 100]).unwrap();
    let broken = ca.folder().join("broken.pem");
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let locked = ca.folder().join("locked.pem");
    std::fs::write(&locked, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
        .unwrap();
    let huge = ca.folder().join("huge.pem");
    std::fs::write(&huge, vec![b'x'; (1 << 20) + 1]).unwrap();
    let missing = ca.folder().join("missing.pem");
    let error = |key: &PathBuf, certificate: &PathBuf, ca_cert: &PathBuf| -> String {
        let files = TlsFiles { private_key: key.clone(), certificate: certificate.clone(), ca_cert: ca_cert.clone() };
        let error: CredentialError = Credentials::load(files).unwrap_err();
        error.to_string()
    };
    let (key, certificate, ca_cert) = (&good.private_key, &good.certificate, &ca.ca_cert());
    let expired = ca.sign_for("old.test", -3);
    for (found, path, problem) in [
        (error(&missing, certificate, ca_cert), &missing, "No such file"),
        (error(key, &ca.folder().to_owned(), ca_cert), &ca.folder().to_owned(), "Is a directory"),
        (error(&garbage, certificate, ca_cert), &garbage, "no PEM section"),
        (
            error(certificate, certificate, ca_cert),
            certificate,
            "found `CERTIFICATE`, expected a PEM file with a private key",
        ),
        (error(&locked, certificate, ca_cert), &locked, "one with a passphrase"),
        (error(key, key, ca_cert), key, "found `PRIVATE KEY`"),
        (error(key, certificate, key), key, "CA certificate"),
        (error(key, &broken, ca_cert), &broken, "cannot be used (the certificate is damaged)"),
        (error(key, certificate, &broken), &broken, "cannot be used"),
        (error(key, certificate, &huge), &huge, "more than 1048576 bytes"),
        (error(&other.private_key, certificate, ca_cert), certificate, "does not belong to the certificate"),
        (error(&expired.private_key, &expired.certificate, ca_cert), &expired.certificate, "expired 3 days ago"),
    ] {
        assert!(found.contains(problem) && found.contains(&path.display().to_string()), "{problem}: {found}");
        assert!(!found.contains('\n'), "one line: {found}");
    }
}

/// The certificate was valid when the end started, and expired later.
#[tokio::test]
async fn an_expired_peer_is_refused_and_told() {
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};
    let ca = CertificateAuthority::new();
    let expired = ca.sign_for("old.test", -2);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca.ca_cert()).unwrap()).unwrap();
    let chain = vec![CertificateDer::from_pem_file(&expired.certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&expired.private_key).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_client_auth_cert(chain, key).unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let (here, there) = tokio::io::duplex(64 << 10);
    let controller = credentials(&ca, "c1.test");
    let client = async { connector.connect("c1.test".try_into().unwrap(), here).await?.read_u8().await };
    let (client, server) = tokio::join!(client, controller.accept(there));
    let (client, server) = (explain(&client.unwrap_err()), explain(&server.unwrap_err()));
    assert!(server.contains("refused: the certificate expired 2 days ago"), "{server}");
    assert!(client.contains("it has expired"), "{client}");
}

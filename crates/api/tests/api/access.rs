//! Access: the Unix socket, tokens with roles, TLS, and addresses that are refused.
use crate::network::{ADMIN, OPERATE, READ, RingNetwork, ServedNetwork, client, write_tokens};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use weir_api::access::Tokens;
use weir_api::client::{ApiClient, ApiClientError};
use weir_api::{ApiConfig, ApiServer};
use weir_testing::CertificateAuthority;
use weir_tls::{ServerTrust, TlsFiles};

const INTENT: &str = r#"{"kind": "host-to-host", "from": ["10.0.0.1"], "to": ["10.0.0.2"]}"#;

#[test]
fn the_socket_is_its_owners_and_is_removed() {
    let served = ServedNetwork::start();
    let path = served.folder.path().join("ring.api");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(served.ask(&served.owner(), "PUT /api/v1/intents/a", Some(INTENT)).0, 201, "no token is needed");
    drop(served.server);
    assert!(!path.exists());
}

#[test]
fn a_role_permits_what_it_is_for() {
    let served = ServedNetwork::start();
    let requests: [(&str, Option<&str>, [u16; 3]); 6] = [
        ("GET /api/v1/network", None, [200; 3]),
        ("POST /api/v1/what-if", Some(r#"{"case": "link-fails", "at": "1:1"}"#), [200; 3]),
        ("PUT /api/v1/intents/a", Some(INTENT), [403, 201, 200]),
        ("DELETE /api/v1/intents/a", None, [403, 204, 404]),
        ("POST /api/v1/tokens/reload", None, [403, 403, 200]),
        ("DELETE /api/v1/network", None, [403, 403, 405]),
    ];
    for (request, body, statuses) in requests {
        let ask = |token| served.ask(&served.holder(token), request, body).0;
        assert_eq!([ask(READ), ask(OPERATE), ask(ADMIN)], statuses, "{request}");
    }
    let (_, problem) = served.ask(&served.holder(READ), "PUT /api/v1/intents/a", Some(INTENT));
    assert_eq!(problem["detail"], "the token's role is read, expected operate for this request");
}

#[test]
fn a_request_without_a_valid_token_is_refused() {
    let served = ServedNetwork::start();
    let nobody = client(&served.server.addresses()[1], None);
    let (status, problem) = served.ask(&nobody, "GET /api/v1/network", None);
    assert_eq!(status, 401);
    assert!(problem["detail"].as_str().unwrap().contains("Authorization: Bearer TOKEN"), "{problem}");
    for wrong in ["", "x", &READ[1..], &format!("{READ}x"), &READ.to_uppercase()] {
        let (status, problem) = served.ask(&served.holder(wrong), "GET /api/v1/network", None);
        assert_eq!(status, 401, "{problem}");
    }
    // The page asks for the token, so it is served without one.
    for open in ["GET /api/v1/health", "GET /api/v1/openapi.json"] {
        assert_eq!(served.ask(&nobody, open, None).0, 200, "{open}");
    }
}

#[test]
fn tokens_are_read_again() {
    let served = ServedNetwork::start();
    let new = "new-0123456789abcdef";
    write_tokens(&served.folder, &format!("admin {ADMIN}\nread {new}\n"));
    assert_eq!(served.ask(&served.holder(new), "GET /api/v1/links", None).0, 401, "only when told");
    let (status, answer) = served.ask(&served.holder(ADMIN), "POST /api/v1/tokens/reload", None);
    assert_eq!((status, &answer["tokens"]), (200, &2.into()));
    assert_eq!(served.ask(&served.holder(new), "GET /api/v1/links", None).0, 200);
    assert_eq!(served.ask(&served.holder(READ), "GET /api/v1/links", None).0, 401);
    write_tokens(&served.folder, "admin short");
    let (status, problem) = served.ask(&served.holder(ADMIN), "POST /api/v1/tokens/reload", None);
    assert!(status == 409 && problem["detail"].as_str().unwrap().contains("line 1"), "{problem}");
    assert_eq!(served.ask(&served.holder(new), "GET /api/v1/links", None).0, 200, "those before stay");
}

fn start(listen: &str, tokens: bool, tls: Option<TlsFiles>) -> Result<ApiServer, String> {
    let folder = tempfile::tempdir().unwrap();
    let tokens = if tokens {
        Tokens::read(&write_tokens(&folder, &format!("admin {ADMIN}"))).unwrap()
    } else {
        Tokens::default()
    };
    let config = ApiConfig { listen: vec![listen.parse().unwrap()], tokens, tls, ..ApiConfig::default() };
    ApiServer::start(config, Arc::new(RingNetwork::default())).map_err(|error| error.to_string())
}

#[test]
fn addresses_that_are_not_safe_are_refused() {
    for (listen, tokens, said) in [
        ("127.0.0.1:0", false, "without tokens"),
        ("0.0.0.0:0", true, "tokens would cross the network in clear; use https:"),
        ("https:127.0.0.1:0", true, "without TLS"),
        ("http:192.0.2.1:80", true, "tokens would cross the network in clear"),
        ("unix:/nonexistent/a.api", false, "its folder does not exist"),
    ] {
        let error = start(listen, tokens, None).err().expect(listen);
        assert!(error.contains(said), "{listen}: {error}");
    }
    let first = start("127.0.0.1:0", true, None).unwrap();
    let taken = first.addresses()[0].to_string();
    let error = start(&taken, true, None).err().unwrap();
    assert!(error.starts_with(&format!("cannot serve the interface on {taken}: ")), "{error}");
    assert!(error.contains("another program listens there"), "{error}");
}

#[test]
fn tokens_cross_the_network_encrypted() {
    let authority = CertificateAuthority::new();
    let party = authority.sign("localhost");
    let files = TlsFiles {
        private_key: party.private_key.clone(),
        certificate: party.certificate.clone(),
        ca_cert: authority.ca_cert(),
    };
    let server = start("https:127.0.0.1:0", true, Some(files)).unwrap();
    let address = server.addresses()[0].to_string();
    let named = address.replace("127.0.0.1", "localhost");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |address: &str, trust: Option<&CertificateAuthority>| {
        let trust = trust.map(|authority| ServerTrust::load(&authority.ca_cert()).unwrap());
        let client = ApiClient::new(address.parse().unwrap(), Some(ADMIN.to_owned()), trust);
        runtime.block_on(client.ask("GET", "/api/v1/hosts", None))
    };
    assert_eq!(ask(&named, Some(&authority)).unwrap().status, 200);
    let refused =
        |answer: Result<_, ApiClientError>| answer.map(|_: weir_api::client::ApiAnswer| ()).unwrap_err().to_string();
    let stranger = refused(ask(&named, Some(&CertificateAuthority::new())));
    assert!(stranger.contains("not signed by the CA that this end was given"), "{stranger}");
    let other_name = refused(ask(&address, Some(&authority)));
    assert!(other_name.contains("certificate is for"), "{other_name}");
    assert!(refused(ask(&named, None)).contains("needs the certificates"), "trust is not optional");
    let plain = refused(ask(&address.replace("https", "http"), None));
    assert!(plain.contains(&address[8..]), "{plain}");
}

#[test]
fn requests_are_counted_by_status() {
    let served = ServedNetwork::start();
    served.ask(&served.owner(), "GET /api/v1/links", None);
    served.ask(&served.holder(READ), "GET /api/v1/links", None);
    served.ask(&served.holder("wrong-0123456789abcdef"), "GET /api/v1/links", None);
    served.ask(&served.owner(), "GET /api/v1/other", None);
    assert_eq!(served.requests.by_status(), [(200, 2), (401, 1), (404, 1)].into());
}

//! The page: its files, and what a browser makes of them.
use crate::network::{ADMIN, OPERATE, RingNetwork, SWITCHES, ServedNetwork, client, write_tokens};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use weir_api::access::Tokens;
use weir_api::{ApiConfig, ApiServer};
use weir_testing::{CertificateAuthority, output_within};
use weir_tls::TlsFiles;

/// Time for the browser to start, load the page and print it.
const BROWSER_TIME: Duration = Duration::from_secs(120);

/// Returns the page as a browser has it after its scripts have run for a while.
fn page_in_browser(url: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]);
    chromium.arg(format!("--user-data-dir={}", profile.path().display()));
    chromium.args(["--virtual-time-budget=3000", "--timeout=20000", "--dump-dom", url]);
    let output = output_within(BROWSER_TIME, &mut chromium);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_browser_shows_the_network() {
    if !weir_testing::programs(&["chromium"]) {
        return;
    }
    let served = ServedNetwork::start();
    let intent = r#"{"kind": "host-to-host", "from": ["10.0.0.1"], "to": ["nowhere"]}"#;
    assert_eq!(served.ask(&served.owner(), "PUT /api/v1/intents/to-nowhere", Some(intent)).0, 201);
    served.network.tell("link-down", "link 1:1 to 2:2 is <down>");
    let page = page_in_browser(&format!("http://{}/#token={ADMIN}", served.place()));
    for dpid in 1..=SWITCHES {
        assert!(page.contains(&format!("aria-label=\"switch {dpid}\"")), "switch {dpid}: {page}");
    }
    assert_eq!(page.matches("class=\"link high\"").count(), 4, "links are coloured by load");
    assert!(
        page.contains("aria-label=\"link 1:1 to 2:2, load 90 %\"") && page.contains("aria-label=\"host alice\""),
        "{page}"
    );
    assert!(page.contains("<td>to-nowhere</td>") && page.contains("class=\"state failed\""), "{page}");
    assert!(page.contains("no host is called nowhere"), "{page}");
    assert!(page.contains("class=\"alarm\">link 1:1 to 2:2 is &lt;down&gt;"), "{page}");
    assert!(page.contains("class=\"live\">live</p>"), "events are followed: {page}");
    assert!(page.contains("4 switches, 4 links, 4 hosts, 1 intent"), "{page}");
}

/// Runs a script of this crate's folder `tests/page`, which says at its end that all was as expected.
fn run_script(name: &str, arguments: &[&str]) {
    let script = weir_testing::workspace().join("crates/api/tests/page").join(name);
    let output = output_within(BROWSER_TIME, Command::new("node").arg(script).args(arguments));
    let [printed, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success() && printed.contains("as expected"), "{printed}{errors}");
}

#[test]
fn nodes_are_placed_apart_in_few_steps() {
    if !weir_testing::programs(&["node"]) {
        return;
    }
    run_script("layout.mjs", &[&weir_testing::workspace().join("crates/api/page").display().to_string()]);
}

/// Uses the page at an address by mouse, touch and keys.
fn use_page(server: &str) {
    let profile = tempfile::tempdir().unwrap();
    run_script("browser.mjs", &[&format!("{server}/#token={ADMIN}"), &profile.path().display().to_string()]);
}

#[test]
fn the_map_is_used_by_mouse_touch_and_keys() {
    if !weir_testing::programs(&["node", "chromium"]) {
        return;
    }
    use_page(&ServedNetwork::start().server.addresses()[1].to_string());
}

#[test]
fn the_page_works_over_https() {
    if !weir_testing::programs(&["node", "chromium"]) {
        return;
    }
    let authority = CertificateAuthority::new();
    let party = authority.sign("127.0.0.1");
    let tls = TlsFiles {
        private_key: party.private_key.clone(),
        certificate: party.certificate.clone(),
        ca_cert: authority.ca_cert(),
    };
    let folder = tempfile::tempdir().unwrap();
    let tokens = Tokens::read(&write_tokens(&folder, &format!("admin {ADMIN}"))).unwrap();
    let listen = vec!["https:127.0.0.1:0".parse().unwrap()];
    let config = ApiConfig { listen, tokens, tls: Some(tls), ..ApiConfig::default() };
    let server = ApiServer::start(config, Arc::new(RingNetwork::default())).unwrap();
    let address = server.addresses()[0].to_string();
    assert!(address.starts_with("https://"), "{address}");
    use_page(&address);
}

#[test]
fn the_browser_asks_for_the_token() {
    if !weir_testing::programs(&["chromium"]) {
        return;
    }
    let served = ServedNetwork::start();
    let page = page_in_browser(&format!("http://{}/#token=wrong-{OPERATE}", served.place()));
    assert!(page.contains("<form id=\"token-form\">") && page.contains("a token is needed"), "{page}");
    assert!(page.contains("<main id=\"main\" hidden"), "{page}");
}

#[test]
fn files_are_served_without_a_token_and_have_a_policy() {
    let served = ServedNetwork::start();
    let nobody = client(&served.server.addresses()[1], None);
    let text = |path: &str| {
        let answer = served.wait(nobody.ask("GET", path, None)).unwrap_or_else(|error| panic!("{path}: {error}"));
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    let page = text("/");
    // The policy forbids scripts and styles inside of the page.
    assert!(!page.contains("<style") && !page.contains("style=") && !page.contains("onclick="), "{page}");
    assert_eq!(page.matches("<script").count(), page.matches("src=\"/page/").count());
    // Each file that a file names is served, and nothing from elsewhere.
    let mut files = vec!["/".to_owned()];
    let mut next = 0;
    while let Some(path) = files.get(next).cloned() {
        let content = text(&path);
        for foreign in content.split(['"', '\'', '(']).filter(|part| part.starts_with("http")) {
            assert!(foreign.starts_with("http://www.w3.org/"), "{path} names {foreign}");
        }
        let named = content.split('"').filter(|part| part.starts_with("/page/") || part.starts_with("./"));
        for name in named.map(|name| name.replace("./", "/page/")) {
            if !files.contains(&name) {
                files.push(name);
            }
        }
        next += 1;
    }
    assert_eq!(files.len(), 11, "{files:?}");
    let head = head_of(&served, "/");
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self';"), "{head}");
    assert!(head.contains("content-type: text/html; charset=utf-8\r\n"), "{head}");
    assert!(head.contains("x-content-type-options: nosniff\r\n"), "{head}");
}

fn head_of(served: &ServedNetwork, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect(served.place()).unwrap();
    write!(socket, "HEAD {path} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

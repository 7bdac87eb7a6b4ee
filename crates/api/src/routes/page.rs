//! The page with the live map: files that are part of the program.
use super::ApiState;
use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::sync::Arc;

/// Limits of what the page may load and do: only files of this server, and no script inside of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// Path, type and content of each file.
const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("../../page/index.html")),
    ("/page/style.css", STYLE, include_str!("../../page/style.css")),
    ("/page/icon.svg", IMAGE, include_str!("../../page/icon.svg")),
    ("/page/page.js", SCRIPT, include_str!("../../page/page.js")),
    ("/page/server.js", SCRIPT, include_str!("../../page/server.js")),
    ("/page/layout.js", SCRIPT, include_str!("../../page/layout.js")),
    ("/page/quadtree.js", SCRIPT, include_str!("../../page/quadtree.js")),
    ("/page/map.js", SCRIPT, include_str!("../../page/map.js")),
    ("/page/view.js", SCRIPT, include_str!("../../page/view.js")),
    ("/page/lists.js", SCRIPT, include_str!("../../page/lists.js")),
    ("/page/forms.js", SCRIPT, include_str!("../../page/forms.js")),
];

/// Returns the routes of the files.
pub(super) fn files() -> Router<Arc<ApiState>> {
    FILES
        .iter()
        .fold(Router::new(), |routes, (path, kind, content)| routes.route(path, get(async || answer(kind, content))))
}

fn answer(kind: &'static str, content: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        // The files belong to the program: after a restart others may be there.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}

//! The files of the page.

pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) content: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($file:literal, $content_type:ident) => {
        asset!(concat!("/page/", $file), $file, $content_type)
    };
    ($path:expr, $file:literal, $content_type:ident) => {
        Asset {
            path: $path,
            content_type: $content_type,
            content: include_str!(concat!("../../page/", $file)),
        }
    };
}

pub(super) const ASSETS: &[Asset] = &[
    asset!("/", "index.html", HTML),
    asset!("views.css", CSS),
    asset!("style.css", CSS),
    asset!("icon.svg", SVG),
    asset!("theme.js", SCRIPT),
    asset!("app.js", SCRIPT),
    asset!("api.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("dialog.js", SCRIPT),
    asset!("chart.js", SCRIPT),
    asset!("questions.js", SCRIPT),
    asset!("sandboxes.js", SCRIPT),
    asset!("sandbox.js", SCRIPT),
    asset!("changes.js", SCRIPT),
    asset!("checkpoints.js", SCRIPT),
    asset!("screen.js", SCRIPT),
    asset!("terminal.js", SCRIPT),
    asset!("recordings.js", SCRIPT),
    asset!("audit.js", SCRIPT),
    asset!("live.js", SCRIPT),
    asset!("login.js", SCRIPT),
];

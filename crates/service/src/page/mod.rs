//! The page for people: questions, sandboxes, changes, terminals and the audit log in a browser. It is a client of the same
//! requests as every other one, and has no right that they have not.
//!
//! Its files are part of the program. Nothing of it is loaded from elsewhere, and nothing that a command wrote becomes a part of it:
//! no script and no style but those files is carried out ([`protect`]).

mod assets;
mod login;

pub(crate) use login::{__path_log_in, __path_log_out, log_in, log_out};

use crate::auth::Protection;
use crate::service::Shared;
use assets::{ASSETS, Asset};
use axum::Router;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

/// No script, style, image or request but our own; in no frame; with no form that leads elsewhere.
const CONTENT_SECURITY_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);
const LOGIN: &str = "/v1/login";

/// The files of the page.
pub(crate) fn add_to(router: Router<Shared>) -> Router<Shared> {
    ASSETS.iter().fold(router, |router, asset| {
        router.route(asset.path, get(move || std::future::ready(answer(asset))))
    })
}

fn answer(asset: &Asset) -> Response {
    let headers = [
        (header::CONTENT_TYPE, asset.content_type),
        // Another version of this program has other files.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, asset.content).into_response()
}

/// What a path asks of a request.
pub(crate) fn protection(method: &Method, path: &str) -> Protection {
    let is_read = *method == Method::GET || *method == Method::HEAD;
    if is_read && ASSETS.iter().any(|asset| asset.path == path) {
        Protection::Page
    } else if *method == Method::POST && path == LOGIN {
        Protection::Login
    } else {
        Protection::Full
    }
}

/// What a browser may do with an answer, whatever is in it.
pub(crate) fn protect(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert("cross-origin-resource-policy", same_origin.clone());
    headers.insert("cross-origin-opener-policy", same_origin);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use super::assets::ASSETS;
    use super::protection;
    use crate::auth::Protection;
    use axum::http::Method;

    #[test]
    fn only_the_files_of_the_page_are_open() {
        assert_eq!(protection(&Method::GET, "/"), Protection::Page);
        assert_eq!(protection(&Method::POST, "/"), Protection::Full);
        assert_eq!(protection(&Method::POST, "/v1/login"), Protection::Login);
        for path in ["/v1/login", "/v1/sandboxes", "/page/", "/page/../v1/sandboxes"] {
            assert_eq!(protection(&Method::GET, path), Protection::Full, "{path}");
        }
    }

    /// What a command wrote is shown as text; with none of these could it become anything else.
    #[test]
    fn no_file_of_the_page_makes_markup_of_text_or_loads_anything_from_elsewhere() {
        let forbidden = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "eval(",
            "new Function",
            "srcdoc",
            "javascript:",
            "https://",
            "onclick=",
            "style=\"",
            "<style",
            "setAttribute(\"style",
            "setAttribute(\"on",
            "@import",
            "url(http",
        ];
        for asset in ASSETS {
            for word in forbidden {
                assert!(!asset.content.contains(word), "{}: {word}", asset.path);
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for asset in ASSETS {
            for line in asset.content.lines() {
                let Some((_, name)) = line.split_once(" from \"./") else { continue };
                let name = name.split('"').next().unwrap_or_default();
                let path = format!("/page/{name}");
                assert!(ASSETS.iter().any(|it| it.path == path), "{}: {path}", asset.path);
            }
        }
    }
}

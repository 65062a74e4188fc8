//! The page, served from the binary (DESIGN 7).

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

use crate::http::no_path;

/// What a page may do: run and style itself from here, and speak to here. Nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

#[derive(RustEmbed)]
#[folder = "studio/"]
struct Studio;

/// `GET /`.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    serve("index.html", &headers).await
}

/// `GET` of a file of the page.
pub(crate) async fn file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    serve(&path, &headers).await
}

async fn serve(path: &str, headers: &HeaderMap) -> Response {
    // Sources for tools alone (types, the package's manifest) have no type here and are not
    // served.
    match (content_type(path), Studio::get(path)) {
        (Some(kind), Some(file)) => respond(kind, file, headers),
        _ => no_path().await,
    }
}

fn respond(kind: &'static str, file: EmbeddedFile, headers: &HeaderMap) -> Response {
    let tag = tag(&file);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|tags| tags.to_str().ok())
        .is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        file.data.into_owned().into_response()
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        // Always asked for, seldom sent: the tag tells whether it is the same.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn tag(file: &EmbeddedFile) -> String {
    use std::fmt::Write as _;
    let mut tag = String::from("\"");
    for byte in &file.metadata.sha256_hash()[..8] {
        // Writing to a String cannot fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

fn content_type(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    Some(match extension {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_page_is_there_under_a_strict_policy() {
        let response = index(HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::OK);
        let headers = response.headers();
        assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"));

        let mut again = HeaderMap::new();
        again.insert(header::IF_NONE_MATCH, headers[header::ETAG].clone());
        assert_eq!(index(again).await.status(), StatusCode::NOT_MODIFIED);
    }

    #[tokio::test]
    async fn what_is_no_file_of_the_page_is_not_there() {
        for path in [
            "nothing.js",
            "../Cargo.toml",
            "wire.d.ts",
            "package.json",
            "",
            "index",
        ] {
            let response = file(Path(path.to_owned()), HeaderMap::new()).await;
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn every_file_that_the_page_loads_has_a_type() {
        let scripts = Studio::iter().filter(|path| path.ends_with(".js")).count();
        assert!(scripts > 0);
    }
}

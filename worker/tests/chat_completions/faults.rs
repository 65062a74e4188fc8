//! Statuses, headers and connections: which faults are worth another try, and after what wait.

use super::*;

const NO_WAIT: Option<u64> = None;

#[tokio::test]
async fn a_status_says_whether_another_try_may_help() {
    let json = r#"{"error":{"message":"kiln is cold","type":"x","code":"y"}}"#;
    let quota = r#"{"error":{"message":"pay first","type":"insufficient_quota"}}"#;
    // Status, headers, body; whether to try again, the wait in milliseconds, the reason's parts.
    let rows: Vec<(
        u16,
        Vec<(&'static str, &str)>,
        &str,
        bool,
        Option<u64>,
        &str,
    )> = vec![
        (408, vec![], "", true, NO_WAIT, "408"),
        (409, vec![], json, true, NO_WAIT, "409"),
        (
            429,
            vec![("retry-after-ms", "120")],
            json,
            true,
            Some(120),
            "429 Too Many Requests: kiln is cold",
        ),
        (
            429,
            vec![("retry-after", "2")],
            json,
            true,
            Some(2000),
            "kiln is cold",
        ),
        (
            429,
            vec![("retry-after", "2")],
            quota,
            false,
            NO_WAIT,
            "pay first",
        ),
        (
            429,
            vec![("x-should-retry", "true")],
            quota,
            false,
            NO_WAIT,
            "pay first",
        ),
        (
            429,
            vec![("x-should-retry", "false")],
            json,
            false,
            NO_WAIT,
            "kiln is cold",
        ),
        (
            400,
            vec![("x-should-retry", "true")],
            json,
            true,
            NO_WAIT,
            "kiln is cold",
        ),
        (
            400,
            vec![],
            json,
            false,
            NO_WAIT,
            "400 Bad Request: kiln is cold",
        ),
        (
            401,
            vec![],
            r#"{"error":{"message":"wrong key sk-secret-1."}}"#,
            false,
            NO_WAIT,
            "401 Unauthorized: wrong key [key].",
        ),
        (
            404,
            vec![],
            r#"{"detail":"no such model"}"#,
            false,
            NO_WAIT,
            "no such model",
        ),
        (
            422,
            vec![],
            "plain text",
            false,
            NO_WAIT,
            "422 Unprocessable Entity: plain text",
        ),
        (
            302,
            vec![("location", "http://127.0.0.1:1/")],
            "",
            false,
            NO_WAIT,
            "302",
        ),
        (
            500,
            vec![],
            "<html>sk-secret-1</html>",
            true,
            NO_WAIT,
            "<html>[key]</html>",
        ),
        (
            503,
            vec![
                ("retry-after", "Tue, 01 Jan 2030 12:00:03 GMT"),
                ("date", "Tue, 01 Jan 2030 12:00:00 GMT"),
            ],
            "",
            true,
            Some(3000),
            "503",
        ),
        (529, vec![], json, true, NO_WAIT, "529"),
    ];
    for (status, headers, body, again, wait, part) in rows {
        let (base, seen) = serve(vec![Answer::status(status, &headers, body)]).await;
        let fault = call(&base, &request(hello())).await.0.unwrap_err();
        let (reason, got) = match fault {
            ModelFault::Retry { reason, after } => (reason, Some(after)),
            ModelFault::Final { reason } => (reason, None),
        };
        let expected = again.then_some(wait.map(Duration::from_millis));
        assert_eq!(got, expected, "{status} {headers:?}: {reason}");
        assert!(reason.contains(part), "{status}: {reason}");
        assert!(!reason.contains("sk-secret-1"), "{status}: {reason}");
        assert_eq!(
            seen.lock().unwrap().len(),
            1,
            "{status}: one try is one request"
        );
    }
}

#[tokio::test]
async fn a_long_message_is_cut() {
    let body = "ä".repeat(70_000);
    let (base, _seen) = serve(vec![Answer::status(400, &[], &body)]).await;
    let fault = call(&base, &request(hello())).await.0.unwrap_err();
    assert_eq!(fault.to_string().chars().count(), 503);
}

#[tokio::test]
async fn a_connection_that_fails_or_breaks_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let fault = call(&nobody, &request(hello())).await.0.unwrap_err();
    assert!(
        matches!(&fault, ModelFault::Retry { reason, .. } if reason.to_lowercase().contains("refused") && !reason.contains("/v1")),
        "{fault:?}"
    );

    let whole =
        "data: {\"choices\":[{\"delta\":{\"content\":\"Tea.\"},\"finish_reason\":\"stop\"}]}\n\n";
    for body in ["", "data: {\"choi", "{\"choices\":", whole] {
        let mut broken = Answer::events(vec![body.as_bytes().to_vec()]);
        broken.end = End::Broken;
        let (base, _seen) = serve(vec![broken]).await;
        let fault = call(&base, &request(hello())).await.0.unwrap_err();
        assert!(
            matches!(fault, ModelFault::Retry { after: None, .. }),
            "{body}: {fault:?}"
        );
    }

    // After [DONE] nobody listens any more.
    let mut broken = Answer::events(vec![format!("{whole}data: [DONE]\n\n").into_bytes()]);
    broken.end = End::Broken;
    let (base, _seen) = serve(vec![broken]).await;
    assert_eq!(call(&base, &request(hello())).await.0.unwrap().text, "Tea.");
}

//! Statuses, headers and connections: which faults are worth another try, and after what wait.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
    let tries = rows.len();
    let server = Server::start().await;
    for (status, headers, body, again, wait, part) in rows {
        let answer = Answer::status(status, &headers, body);
        let fault = server.ask(answer, &request(hello())).await.0.unwrap_err();
        let (reason, got) = match fault {
            ModelFault::Retry { reason, after } => (reason, Some(after)),
            ModelFault::Final { reason } => (reason, None),
        };
        let expected = again.then_some(wait.map(Duration::from_millis));
        assert_eq!(got, expected, "{status} {headers:?}: {reason}");
        assert!(reason.contains(part), "{status}: {reason}");
        assert!(!reason.contains(KEY), "{status}: {reason}");
    }
    assert_eq!(
        server.seen.lock().unwrap().len(),
        tries,
        "one try is one request"
    );
}

#[tokio::test]
async fn a_long_message_is_cut() {
    let body = "ä".repeat(70_000);
    let server = Server::start().await;
    let answer = Answer::status(400, &[], &body);
    let fault = server.ask(answer, &request(hello())).await.0.unwrap_err();
    assert_eq!(fault.to_string().chars().count(), 503);
}

/// Sends a whole head and less of the body than it promises, then closes.
async fn serve_half(body: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let promised = body.len() + 100;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length:";
    let answer = format!("{head} {promised}\r\n\r\n{body}");
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 16 * 1024];
        assert!(socket.read(&mut request).await.unwrap() > 0);
        socket.write_all(answer.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        // Until the client hangs up, so that it reads all of the answer.
        while socket.read(&mut request).await.is_ok_and(|read| read > 0) {}
    });
    base
}

#[tokio::test]
async fn a_connection_that_fails_or_breaks_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}/v1", listener.local_addr().unwrap());
    drop(listener);
    let model = ChatCompletions::new(&nobody, "house", Some(KEY)).unwrap();
    let fault = ask(&model, &request(hello())).await.0.unwrap_err();
    let reason = fault.to_string();
    assert!(
        matches!(fault, ModelFault::Retry { after: None, .. }),
        "{reason}"
    );
    assert!(reason.to_lowercase().contains("refused"), "{reason}");
    assert!(!reason.contains("/v1"), "{reason}");

    let whole = json!({ "choices": [{ "delta": { "content": "Tea." }, "finish_reason": "stop" }] });
    let whole = format!("data: {whole}\n\n");
    for body in ["", "data: {\"choi", "{\"choices\":", whole.as_str()] {
        let base = serve_half(body).await;
        let model = ChatCompletions::new(&base, "house", Some(KEY)).unwrap();
        let (fault, said) = ask(&model, &request(hello())).await;
        let fault = fault.unwrap_err();
        assert!(
            matches!(fault, ModelFault::Retry { after: None, .. }),
            "{body}: {fault:?}"
        );
        assert_eq!(said.is_empty(), body != whole, "{body}");
    }

    // After [DONE] nobody listens any more.
    let base = serve_half(&format!("{whole}data: [DONE]\n\n")).await;
    let model = ChatCompletions::new(&base, "house", Some(KEY)).unwrap();
    assert_eq!(ask(&model, &request(hello())).await.0.unwrap().text, "Tea.");
}

//! Statuses, headers and connections: which faults are worth another try, and after what wait.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// The rows: status, headers, body, and the part of the reason after which to `retry`, perhaps
/// after `ms`, or which is `final`.
#[tokio::test]
async fn a_status_says_whether_another_try_may_help() {
    let rows: Value = serde_json::from_str(include_str!("statuses.json")).unwrap();
    let rows = rows.as_array().unwrap();
    let server = Server::start().await;
    for row in rows {
        let status = row[0].as_u64().unwrap().try_into().unwrap();
        let headers = row[1].as_object().unwrap().iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let body = row[2]
            .as_str()
            .map_or_else(|| row[2].to_string(), str::to_owned);
        let answer = Answer::status(status, &headers, &body);
        let (fault, part) = match server.ask(answer, &request(hello())).await.0.unwrap_err() {
            ModelFault::Retry { reason, after } => {
                let expected = row[3]["ms"].as_u64().map(Duration::from_millis);
                assert_eq!(after, expected, "{row}");
                (reason, &row[3]["retry"])
            }
            ModelFault::Final { reason } => (reason, &row[3]["final"]),
        };
        assert!(
            part.as_str().is_some_and(|part| fault.contains(part)),
            "{row}: {fault}"
        );
        assert!(!fault.contains(KEY), "{row}: {fault}");
    }
    let tries = server.seen.lock().unwrap().len();
    assert_eq!(tries, rows.len(), "one try is one request");
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

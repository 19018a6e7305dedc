//! The floor: the least that a client can do. It keeps an append-only request body, sends it, reads the answer to its
//! end and appends what a real client would have to append. It parses nothing.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::shape::{Shape, TOOL};

/// Holds `tasks` conversations at once.
pub(crate) async fn run(address: &str, shape: Shape, tasks: usize) -> anyhow::Result<()> {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let url = format!("http://{address}/v1/chat/completions");
    let mut conversations = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        conversations.spawn(converse(client.clone(), url.clone(), shape));
    }
    while let Some(ended) = conversations.join_next().await {
        ended??;
    }
    Ok(())
}

async fn converse(client: Client<HttpConnector, Full<Bytes>>, url: String, shape: Shape) -> anyhow::Result<()> {
    let result = "x".repeat(shape.tool_bytes);
    let mut body = format!(
        "{{\"model\":\"{shape}\",\"stream\":true,\"messages\":[{{\"role\":\"system\",\"content\":\"You fetch.\"}},\
         {{\"role\":\"user\",\"content\":\"Fetch everything.\"}}"
    );
    for turn in 1..=shape.turns {
        let sent = Bytes::from(format!("{body}]}}"));
        let request = Request::post(&url).header("content-type", "application/json").body(Full::new(sent))?;
        let response = client.request(request).await?;
        anyhow::ensure!(response.status().is_success(), "the server answered {}", response.status());
        let mut stream = response.into_body();
        while let Some(frame) = stream.frame().await {
            frame?;
        }
        body.push_str(&format!(
            ",{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"call_{turn}\",\"type\":\"function\",\"function\":\
             {{\"name\":\"{TOOL}\",\"arguments\":\"{{}}\"}}}}]}},{{\"role\":\"tool\",\"tool_call_id\":\"call_{turn}\",\
             \"content\":\"{result}\"}}"
        ));
    }
    Ok(())
}

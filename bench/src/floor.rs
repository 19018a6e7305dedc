//! The floor: the least that a client can do. It keeps an append-only request body, sends it, reads the answer to its
//! end and appends what a real client would have to append. It parses nothing.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use locum::models::providers::Protocol;

use crate::shape::Shape;
use crate::wire;

/// Holds `tasks` conversations at once.
pub(crate) async fn run(address: &str, protocol: Protocol, shape: Shape, tasks: usize) -> anyhow::Result<()> {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let url = format!("http://{address}{}", wire::path(protocol, &shape.to_string()));
    let mut conversations = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let (client, url) = (client.clone(), url.clone());
        conversations.spawn(async move { converse(&client, &url, protocol, shape).await });
    }
    while let Some(ended) = conversations.join_next().await {
        ended??;
    }
    Ok(())
}

async fn converse(
    client: &Client<HttpConnector, Full<Bytes>>,
    url: &str,
    protocol: Protocol,
    shape: Shape,
) -> anyhow::Result<()> {
    let result = "x".repeat(shape.tool_bytes);
    let mut body = wire::first(protocol, shape);
    for turn in 1..=shape.turns {
        let sent = Bytes::from([body.open.as_str(), body.close].concat());
        let request = Request::post(url).header("content-type", "application/json").body(Full::new(sent))?;
        let response = client.request(request).await?;
        anyhow::ensure!(response.status().is_success(), "the server answered {}", response.status());
        let mut stream = response.into_body();
        while let Some(frame) = stream.frame().await {
            frame?;
        }
        body.open.push_str(&wire::turn(protocol, turn, &result));
    }
    Ok(())
}

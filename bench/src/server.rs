//! A model server on loopback: every protocol, streamed, from a conversation's shape alone.

use std::convert::Infallible;
use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::shape::Shape;
use crate::wire;

/// Serves until its standard input ends: a parent that dies takes its server with it.
pub(crate) fn serve() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let mut out = std::io::stdout();
        writeln!(out, "{}", listener.local_addr()?)?;
        out.flush()?;
        let parent = tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        tokio::select! {
            served = accept(listener) => served,
            _ = parent => Ok(()),
        }
    })
}

async fn accept(listener: TcpListener) -> anyhow::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            // A client that hangs up is done.
            connection.await.ok();
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let (Some(protocol), Some(shape)) = (wire::spoken_at(&path), shape_of(&path, &body)) else {
        let mut refusal = Response::new(Full::new(Bytes::from_static(b"no protocol or no shape")));
        *refusal.status_mut() = hyper::StatusCode::BAD_REQUEST;
        return Ok(refusal);
    };
    if shape.latency_ms > 0 {
        tokio::time::sleep(Duration::from_millis(shape.latency_ms)).await;
    }
    let turn = memchr::memmem::find_iter(&body, wire::mark(protocol)).count() as u32 + 1;
    let is_last = turn >= shape.turns;
    let text = if is_last { wire::final_answer(protocol, shape.chunks) } else { wire::tool_call(protocol, turn) };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    response.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// The model's name stands in the path, or near the front of the request.
fn shape_of(path: &str, body: &[u8]) -> Option<Shape> {
    const KEY: &[u8] = b"\"model\":\"";
    if let Some((_, name)) = path.split_once("/models/") {
        return name.split(':').next()?.parse().ok();
    }
    let start = memchr::memmem::find(body, KEY)? + KEY.len();
    let end = start + memchr::memchr(b'"', body.get(start..)?)?;
    std::str::from_utf8(&body[start..end]).ok()?.parse().ok()
}

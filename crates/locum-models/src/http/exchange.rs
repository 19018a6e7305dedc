//! Requests that are not for a model, over the same client: what they carry is the caller's affair.

use std::io;

use bytes::Bytes;
use hyper::Request;

use super::{Answer, HttpClient, Segments};
use crate::model::ModelError;

/// A request, in plain words.
#[derive(Debug, Clone)]
pub struct Outgoing<'a> {
    /// `GET`, `POST` or `DELETE`, for example.
    pub method: &'a str,
    /// The whole address.
    pub url: &'a str,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Vec<u8>,
}

/// An answer whose body is under way.
pub struct Exchange {
    answer: Answer,
}

impl HttpClient {
    /// Sends a request and waits for the head of its answer. Whatever its status is, it is an answer.
    ///
    /// # Errors
    ///
    /// The address cannot be reached, a header or the address makes no sense, or nothing came in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the request; the server may have acted on it.
    pub async fn exchange(&self, outgoing: Outgoing<'_>) -> io::Result<Exchange> {
        let mut request = Request::builder().method(outgoing.method).uri(outgoing.url);
        for (name, value) in &outgoing.headers {
            request = request.header(name, value);
        }
        let pieces = if outgoing.body.is_empty() { Vec::new() } else { vec![Bytes::from(outgoing.body)] };
        let request = request.body(Segments::new(pieces)).map_err(io::Error::other)?;
        Ok(Exchange { answer: self.send(request).await.map_err(failed)? })
    }
}

impl Exchange {
    /// The status, 200 for example.
    pub fn status(&self) -> u16 {
        self.answer.status.as_u16()
    }

    /// A header, if it is there and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers.get(name)?.to_str().ok()
    }

    /// The next piece of the body; none at its end. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    ///
    /// The answer was cut off, or nothing came in time.
    pub async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        self.answer.chunk().await.map_err(failed)
    }
}

fn failed(error: ModelError) -> io::Error {
    io::Error::other(error.message)
}

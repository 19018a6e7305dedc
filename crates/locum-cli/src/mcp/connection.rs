//! One client's lines as messages of the SDK: bounded, and answered with a typed error where they make no sense, so
//! that nothing a client writes ends the connection. It does not know what is asked.

use std::io;
use std::pin::Pin;

use locum::limits;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta as _, RequestId};
use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, Empty};
use tokio_util::sync::CancellationToken;

use super::tasks::handshake_era;
use crate::lines::{Line, Lines};

type Sending = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A client's lines, and the way back to it.
pub(super) struct Connection<R, W: AsyncWrite> {
    lines: Lines<R>,
    writer: AsyncRwTransport<RoleServer, Empty, W>,
    /// An answer to a line that was no message. It is kept here because `receive` may be dropped half-way.
    answering: Option<Sending>,
    has_opened: bool,
    left: CancellationToken,
}

impl<R, W> Connection<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// A connection that cancels `left` when the client says no more.
    pub(super) fn new(input: R, output: W, left: CancellationToken) -> Self {
        let writer = AsyncRwTransport::new_server(tokio::io::empty(), output);
        Self { lines: Lines::new(input), writer, answering: None, has_opened: false, left }
    }

    async fn next_message(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            if let Some(sending) = &mut self.answering {
                let sent = sending.await;
                self.answering = None;
                sent?;
            }
            let Some(line) = self.lines.next().await? else { return Ok(None) };
            match read(line) {
                Read::Message(message) if self.is_wanted(&message) => return Ok(Some(*message)),
                Read::Message(_) | Read::Nothing => {}
                Read::Refused(error, id) => {
                    self.answering = Some(Box::pin(self.writer.send(ServerJsonRpcMessage::error(error, id))));
                }
            }
        }
    }

    /// The SDK ends a connection that opens with anything but a request.
    fn is_wanted(&mut self, message: &ClientJsonRpcMessage) -> bool {
        let JsonRpcMessage::Request(request) = message else { return self.has_opened };
        self.has_opened |= match &request.request {
            ClientRequest::InitializeRequest(_) => true,
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
            request => request.get_meta().protocol_version().is_some(),
        };
        true
    }
}

impl<R, W> Transport<RoleServer> for Connection<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.writer.send(handshake_era::completed(message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // A connection that cannot be read or written is one that the client has left.
        let message = self.next_message().await.ok().flatten();
        if message.is_none() {
            self.left.cancel();
        }
        message
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.close().await
    }
}

/// What a line turned out to be.
#[derive(Debug)]
enum Read {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that is answered: an empty line, or a notification that nobody here knows.
    Nothing,
    /// Something to answer with an error; without an id where none can be read.
    Refused(ErrorData, Option<RequestId>),
}

fn read(line: Line) -> Read {
    let bytes = match line {
        Line::Whole(bytes) => bytes,
        Line::TooLong => {
            let message = format!("the message is longer than {} bytes", limits::REQUEST_BYTES_MAX);
            return Read::Refused(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), None);
        }
    };
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes).trim_ascii();
    if bytes.is_empty() {
        return Read::Nothing;
    }
    let unreadable = |message| Read::Refused(ErrorData::new(ErrorCode::PARSE_ERROR, message, None), None);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return unreadable(format!("the message is not UTF-8 from byte {} on", error.valid_up_to())),
    };
    match serde_json::from_str(text) {
        Ok(value) => read_value(value),
        Err(error) => unreadable(format!("the message is not JSON: {error}")),
    }
}

fn read_value(value: Value) -> Read {
    let invalid =
        |message: &'static str, id| Read::Refused(ErrorData::new(ErrorCode::INVALID_REQUEST, message, None), id);
    let Value::Object(fields) = &value else {
        return invalid("a message must be one JSON object", None);
    };
    let is_notification = fields.get("method").is_some_and(Value::is_string) && !fields.contains_key("id");
    let id = fields.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
    match serde_json::from_value(handshake_era::renamed(value)) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(_) if is_notification => Read::Nothing,
        Err(_) => invalid("the message is not a JSON-RPC 2.0 request, notification or response", id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8]) -> String {
        match read(Line::Whole(line.to_vec())) {
            Read::Nothing => "nothing".to_owned(),
            Read::Message(message) => match *message {
                JsonRpcMessage::Request(request) => format!("request {}", request.id),
                JsonRpcMessage::Notification(_) => "notification".to_owned(),
                JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => "response".to_owned(),
            },
            Read::Refused(error, id) => {
                format!("{} {}", error.code.0, id.map_or_else(|| "-".to_owned(), |id| id.to_string()))
            }
        }
    }

    #[test]
    fn every_line_is_a_message_or_nothing_or_a_coded_error() {
        let cases: [(&[u8], &str); 20] = [
            (b"", "nothing"),
            (b" \r", "nothing"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1"),
            (b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r", "request 1"),
            (br#"{"jsonrpc":"2.0","id":"a","method":"unheard/of"}"#, "request a"),
            (br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}"#, "-32600 1"),
            (br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification"),
            (br#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#, "nothing"),
            (br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "response"),
            (b"nonsense", "-32700 -"),
            (b"{", "-32700 -"),
            (b"{} {}", "-32700 -"),
            (b"\xff\xfe", "-32700 -"),
            (b"{}", "-32600 -"),
            (b"[]", "-32600 -"),
            (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "-32600 -"),
            (b"null", "-32600 -"),
            (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "-32600 1"),
            (br#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "-32600 -"),
            (br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "-32600 -"),
        ];
        for (line, expected) in cases {
            assert_eq!(check(line), expected, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn nesting_without_end_is_an_error() {
        assert_eq!(check("[".repeat(100_000).as_bytes()), "-32700 -");
    }
}

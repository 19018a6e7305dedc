//! A network for tests: it writes down whom it is asked to reach, and leads public addresses to a server of the test.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::network::Network;

/// A network that is seen through.
#[derive(Default)]
pub(crate) struct TestNetwork {
    /// What names lead to: one answer after the other, the last one for ever.
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    /// Where connections to public addresses lead instead.
    detour: Option<SocketAddr>,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl TestNetwork {
    /// A network whose public addresses all lead to one server.
    pub(crate) fn leading_to(server: SocketAddr) -> Self {
        Self { detour: Some(server), ..Self::default() }
    }

    /// Makes a name known, with what it leads to at each look.
    pub(crate) fn name(&self, name: &str, answers: &[&[&str]]) {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        self.names.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
    }

    /// Whom it was asked to reach since the last time.
    pub(crate) fn dialled(&self) -> Vec<SocketAddr> {
        std::mem::take(&mut self.dialled.lock().unwrap())
    }
}

impl Network for TestNetwork {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut names = self.names.lock().unwrap();
        let answer =
            names.get_mut(name).map(|answers| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().unwrap().push(address);
        let is_public = super::public::objection(address.ip()).is_none();
        let target = self.detour.filter(|_| is_public).unwrap_or(address);
        Box::pin(TcpStream::connect(target))
    }
}

/// A server that answers each path with what is written for it. It ends with the test's runtime.
pub(crate) async fn server(pages: &[(&str, &str)]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pages: Arc<HashMap<String, String>> =
        Arc::new(pages.iter().map(|(path, answer)| ((*path).to_owned(), (*answer).to_owned())).collect());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&pages)));
        }
    });
    address
}

/// Answers one request: `STATUS REASON`, headers and body as they are written, with the length added.
async fn answer(mut stream: TcpStream, pages: Arc<HashMap<String, String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let answer = pages.get(path).cloned().unwrap_or_else(|| "404 Not Found\n\nno such page".to_owned());
    let (top, body) = answer.split_once("\n\n").unwrap_or((&answer, ""));
    let top = top.replace('\n', "\r\n");
    let answer = format!("HTTP/1.1 {top}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    // Whoever asked may have seen enough.
    stream.write_all(answer.as_bytes()).await.ok();
}

//! The gate of a command that may reach named hosts: a proxy at which the command's own network ends. What is not named
//! is refused, to the command and in what its tool says.

use std::sync::{Arc, Mutex, PoisonError};

use locum_core::limits;
use locum_core::permission::HostPattern;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::address::{Address, Host, split_port};
use super::dialer::{Dialer, Reach};
use crate::sandbox::ENTRANCE_PORT;

/// Bytes of the head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// What is said to a connection that goes through.
const THROUGH: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A gate that is open for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Gate {
    _serving: AbortOnDropHandle<()>,
}

/// What a gate lets through.
#[derive(Debug, Clone)]
pub(crate) struct Passage {
    /// Lists of hosts: a host must be in each of them.
    hosts: Arc<[Vec<HostPattern>]>,
    dialer: Arc<Dialer>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Gate {
    /// Opens a gate at which connections arrive.
    pub(crate) fn open(listener: TcpListener, passage: Passage) -> Self {
        Self { _serving: AbortOnDropHandle::new(tokio::spawn(serve(listener, passage))) }
    }
}

async fn serve(listener: TcpListener, passage: Passage) {
    let places = Arc::new(Semaphore::new(limits::GATE_CONNECTIONS_MAX));
    // All of them end with this one.
    let mut connections = JoinSet::new();
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else { return };
        while connections.try_join_next().is_some() {}
        let passage = passage.clone();
        connections.spawn(async move {
            let _place = place;
            passage.attend(stream).await;
        });
    }
}

/// What tells programs where the way out is. What they serve themselves they reach without it, unless the user named this
/// machine.
pub(crate) fn proxy_variables(hosts: &[Vec<HostPattern>]) -> Vec<(String, String)> {
    let names_machine = hosts.iter().flatten().any(HostPattern::names_machine);
    let around = if names_machine { "" } else { "localhost,127.0.0.1,::1" };
    let proxy = format!("http://127.0.0.1:{ENTRANCE_PORT}");
    let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"].map(|name| (name, proxy.as_str()));
    let all = proxies.into_iter().chain([("NO_PROXY", around), ("no_proxy", around)]);
    all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What a command asks of a gate.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    host: Host,
    port: u16,
    /// What is sent on instead of what was asked; nothing for a connection that the command speaks over itself.
    head: Option<String>,
}

impl Passage {
    /// A passage to the hosts that are in each of these lists.
    pub(crate) fn new(hosts: &[Vec<HostPattern>], dialer: Arc<Dialer>) -> Self {
        Self { hosts: hosts.into(), dialer, refused: Arc::default() }
    }

    /// What was refused since the last time, in words.
    pub(crate) fn refused(&self) -> Vec<String> {
        std::mem::take(&mut self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn attend(&self, mut stream: TcpStream) {
        let passed = self.pass(&mut stream).await;
        if let Err(why) = passed {
            self.note(&why);
            let body = format!("locum: {why}\n");
            let answer = format!(
                "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{body}",
                body.len()
            );
            // Whoever went away needs no answer.
            stream.write_all(answer.as_bytes()).await.ok();
        }
    }

    async fn pass(&self, stream: &mut TcpStream) -> Result<(), String> {
        // A connection that asks for nothing is not worth a word.
        let Some(head) = head_of(stream).await else { return Ok(()) };
        let wish = Wish::read(&head)?;
        let reach = self.judge(&wish)?;
        let mut line = match wish.head {
            None => self.dialer.reach_secure(&wish.host, wish.port, reach).await?,
            Some(_) => self.dialer.connect(&wish.host, wish.port, reach).await?,
        };
        let begun = match &wish.head {
            None => stream.write_all(THROUGH.as_bytes()).await,
            Some(head) => line.write_all(head.as_bytes()).await,
        };
        if begun.is_ok() {
            // Either side may hang up at any time.
            copy_bidirectional(stream, &mut line).await.ok();
        }
        Ok(())
    }

    /// Whether a wish is one for a host that is named, and where that may be.
    fn judge(&self, wish: &Wish) -> Result<Reach, String> {
        let host = wish.host.bare();
        let mut is_named = true;
        for list in self.hosts.iter() {
            let mut fitting = list.iter().filter(|pattern| pattern.fits(&host, wish.port)).peekable();
            if fitting.peek().is_none() {
                let named: Vec<String> = list.iter().map(ToString::to_string).collect();
                let named = named.join(", ");
                return Err(format!("{}:{} is not in the `network` list ({named})", wish.host, wish.port));
            }
            is_named &= fitting.any(HostPattern::names_one);
        }
        // A host that is spelled out as one of this network may be there; other names lead to the public internet only.
        let is_hidden_by_name = wish.host.is_local_name() || matches!(wish.host, Host::Literal(_));
        Ok(if is_named && is_hidden_by_name { Reach::Anywhere } else { Reach::Public })
    }

    fn note(&self, why: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < limits::GATE_REFUSALS_TOLD_MAX && !refused.iter().any(|known| known == why) {
            refused.push(why.to_owned());
        }
    }
}

/// The head of a request, up to the empty line and not a byte further.
async fn head_of(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return None;
        }
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

impl Wish {
    fn read(head: &str) -> Result<Self, String> {
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if method == "CONNECT" {
            let (host, port) = split_port(target)?;
            return Ok(Self { host: Host::parse(host)?, port: port.unwrap_or(443), head: None });
        }
        let address = Address::parse(target)
            .map_err(|why| format!("the proxy takes CONNECT and http:// addresses, not `{target:.100}`: {why}"))?;
        if address.is_secure() {
            return Err("https:// addresses are reached with CONNECT".to_owned());
        }
        let is_ours = |line: &&str| {
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            // One request for each connection, so that nothing that follows is sent to another host.
            !line.is_empty()
                && !matches!(name.as_str(), "proxy-authorization" | "proxy-connection" | "connection" | "host")
        };
        let kept: Vec<&str> = headers.split("\r\n").filter(is_ours).collect();
        let kept = kept.iter().map(|line| format!("{line}\r\n")).collect::<String>();
        let head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{kept}\r\n",
            address.target,
            address.authority()
        );
        Ok(Self { host: address.host, port: address.port, head: Some(head) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestNetwork, server};
    use super::*;

    /// What a gate for these hosts answers to a request, and what it notes.
    async fn asked(hosts: &[&str], request: &str) -> (String, Vec<String>) {
        let page = server(&[("/page", "200 OK\n\nthe page")]).await;
        let network = TestNetwork::leading_to(page);
        network.name("public.example", &[&["1.1.1.1"]]);
        network.name("inside.example", &[&["10.0.0.1"]]);
        network.name("a.public.example", &[&["1.1.1.1"]]);
        let hosts: Vec<HostPattern> = hosts.iter().map(|host| HostPattern::parse(host).unwrap()).collect();
        let passage = Passage::new(&[hosts], Arc::new(Dialer::default().over(Arc::new(network))));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let _gate = Gate::open(listener, passage.clone());
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.replace("PAGE", &page.to_string()).replace('\n', "\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok();
        (
            answer.lines().next().unwrap_or_default().to_owned() + " | " + answer.lines().last().unwrap_or_default(),
            passage.refused(),
        )
    }

    #[tokio::test]
    async fn named_hosts_are_reached() {
        for (hosts, request) in [
            (&["public.example"][..], "GET http://public.example/page HTTP/1.1\nHost: x\n\n"),
            (&["public.example:80"], "GET http://PUBLIC.example./page HTTP/1.1\n\n"),
            (&["*.public.example"], "GET http://a.public.example/page HTTP/1.1\n\n"),
            (&["*"], "GET http://public.example/page HTTP/1.1\n\n"),
            (&["127.0.0.1"], "GET http://PAGE/page HTTP/1.1\n\n"),
        ] {
            let (answer, refused) = asked(hosts, request).await;
            assert_eq!((answer.as_str(), refused), ("HTTP/1.1 200 OK | the page", Vec::new()), "{request}");
        }
        let through = "CONNECT public.example:443 HTTP/1.1\nHost: public.example:443\n\nGET /page HTTP/1.1\n\n";
        let (answer, refused) = asked(&["public.example"], through).await;
        assert_eq!((answer.as_str(), refused), ("HTTP/1.1 200 Connection established | the page", Vec::new()));
    }

    #[tokio::test]
    async fn everything_else_is_refused_and_noted() {
        for (hosts, request, why) in [
            (
                &["public.example"][..],
                "GET http://other.example/ HTTP/1.1\n\n",
                "other.example:80 is not in the `network` list (public.example)",
            ),
            (
                &["public.example:443"],
                "CONNECT public.example:22 HTTP/1.1\n\n",
                "public.example:22 is not in the `network` list (public.example:443)",
            ),
            (
                &["inside.example"],
                "CONNECT inside.example:443 HTTP/1.1\n\n",
                "inside.example leads to 10.0.0.1, which is private; only the public internet can be reached",
            ),
            (
                &["*"],
                "GET http://PAGE/page HTTP/1.1\n\n",
                "127.0.0.1 is this machine; only the public internet can be reached",
            ),
            (
                &["*"],
                "CONNECT localhost:80 HTTP/1.1\n\n",
                "localhost is not a name of the public internet, and only that can be reached",
            ),
            (
                &["*"],
                "CONNECT 0x7f000001:80 HTTP/1.1\n\n",
                "`0x7f000001` is a number in a form that programs read differently: write a.b.c.d",
            ),
            (&["*"], "GET https://public.example/ HTTP/1.1\n\n", "https:// addresses are reached with CONNECT"),
            (
                &["*"],
                "GET /page HTTP/1.1\nHost: public.example\n\n",
                "the proxy takes CONNECT and http:// addresses, not `/page`: it must begin with https:// or http://",
            ),
        ] {
            let (answer, refused) = asked(hosts, request).await;
            assert_eq!((answer, refused), (format!("HTTP/1.1 403 Forbidden | locum: {why}"), vec![why.to_owned()]));
        }
    }
}

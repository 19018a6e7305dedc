//! Opening connections, to addresses that were judged at that moment.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use locum_core::limits;
use locum_models::http::{Proxy, ProxyServer, Tls};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::address::{Address, Host};
use super::network::{Network, SystemNetwork};
use super::public::objection;

/// Bytes of what a proxy answers before it lets the connection through.
const PROXY_ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Whom a connection may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Hosts of the public internet: a model says where.
    Public,
    /// Anybody: the user says where.
    Anywhere,
}

/// Opens connections.
pub(crate) struct Dialer {
    network: Arc<dyn Network>,
    proxy: Proxy,
    ca_file: Option<PathBuf>,
    /// Made for the first https address.
    tls: OnceLock<Result<Tls, String>>,
}

/// A connection over which http is spoken.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Default for Dialer {
    fn default() -> Self {
        Self::new(Proxy::default(), None)
    }
}

impl std::fmt::Debug for Dialer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}

impl Dialer {
    /// Connections as the user's settings want them: through a proxy, with further certificates.
    pub(crate) fn new(proxy: Proxy, ca_file: Option<PathBuf>) -> Self {
        Self { network: Arc::new(SystemNetwork), proxy, ca_file, tls: OnceLock::new() }
    }

    /// The same over another network.
    #[cfg(test)]
    pub(crate) fn over(self, network: Arc<dyn Network>) -> Self {
        Self { network, ..self }
    }

    /// A connection over which an address can be asked. Dropping the future closes it.
    pub(super) async fn dial(&self, address: &Address, reach: Reach) -> Result<Box<dyn Stream>, String> {
        if !address.is_secure() {
            return Ok(Box::new(self.connect(&address.host, address.port, reach).await?));
        }
        let name = address.host.bare();
        let stream = self.reach_secure(&address.host, address.port, reach).await?;
        let secured = self.tls()?.connect(&name, stream).await;
        let failed = |error| format!("{} does not speak TLS as it should: {error}", address.host);
        Ok(Box::new(secured.map_err(failed)?))
    }

    /// A connection over which TLS is going to be spoken: through the proxy, if there is one before this host.
    pub(super) async fn reach_secure(&self, host: &Host, port: u16, reach: Reach) -> Result<TcpStream, String> {
        match self.proxy.before(&host.bare())? {
            None => self.connect(host, port, reach).await,
            Some(proxy) => self.tunnel(host, port, &proxy, reach).await,
        }
    }

    fn tls(&self) -> Result<&Tls, String> {
        let made = self.tls.get_or_init(|| match &self.ca_file {
            None => Ok(Tls::default()),
            Some(ca_file) => Tls::default().trusting(ca_file).map_err(|error| error.message),
        });
        made.as_ref().map_err(Clone::clone)
    }

    /// A connection to a host. Its name is looked up once; where only public hosts may be reached, each of its
    /// addresses must be public, and no other address than these is dialled.
    pub(crate) async fn connect(&self, host: &Host, port: u16, reach: Reach) -> Result<TcpStream, String> {
        let addresses = match host {
            Host::Literal(literal) => vec![*literal],
            Host::Name(name) => {
                check_name(host, reach)?;
                let found = self.network.resolve(name).await;
                found.map_err(|error| format!("{name} cannot be looked up: {error}"))?
            }
        };
        check_addresses(host, &addresses, reach)?;
        self.open(host, &addresses, port).await
    }

    async fn open(&self, host: &Host, addresses: &[IpAddr], port: u16) -> Result<TcpStream, String> {
        let mut last = "it has no address".to_owned();
        for address in addresses.iter().take(limits::WEB_ADDRESSES_TRIED_MAX) {
            let connecting = self.network.connect(SocketAddr::new(*address, port));
            match tokio::time::timeout(Duration::from_secs(limits::WEB_CONNECT_SECONDS_MAX), connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => last = "nobody answered in time".to_owned(),
            }
        }
        Err(format!("{host} cannot be reached: {last}"))
    }

    /// A connection through a proxy, which looks the name up. What is known of the name here is judged; where nothing
    /// is, the user's proxy decides.
    async fn tunnel(&self, host: &Host, port: u16, proxy: &ProxyServer, reach: Reach) -> Result<TcpStream, String> {
        check_name(host, reach)?;
        let known = match host {
            Host::Literal(literal) => vec![*literal],
            Host::Name(name) => self.network.resolve(name).await.unwrap_or_default(),
        };
        if !known.is_empty() {
            check_addresses(host, &known, reach)?;
        }
        let server = match proxy.host.parse::<IpAddr>() {
            Ok(literal) => Host::Literal(literal),
            Err(_) => Host::Name(proxy.host.clone()),
        };
        let mut stream = self.connect(&server, proxy.port, Reach::Anywhere).await?;
        let authority = format!("{host}:{port}");
        let authorization = proxy.authorization.as_ref();
        let authorization = authorization
            .map_or_else(String::new, |value| format!("Proxy-Authorization: {}\r\n", value.expose_secret()));
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n");
        let failed = |error: std::io::Error| format!("the proxy {server} closed the connection: {error}");
        stream.write_all(request.as_bytes()).await.map_err(failed)?;
        let answer = head_of(&mut stream).await.map_err(failed)?;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        if status != "200" {
            let line: String = answer.lines().next().unwrap_or_default().chars().take(200).collect();
            return Err(format!("the proxy {server} did not let {authority} through: {line}"));
        }
        Ok(stream)
    }
}

/// What a proxy answers, up to the empty line; not a byte more, for what follows is not the proxy's.
async fn head_of(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= PROXY_ANSWER_BYTES_MAX {
            return Err(std::io::Error::other("its answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn check_name(host: &Host, reach: Reach) -> Result<(), String> {
    if reach == Reach::Public && host.is_local_name() {
        return Err(format!("{host} is not a name of the public internet, and only that can be reached"));
    }
    Ok(())
}

fn check_addresses(host: &Host, addresses: &[IpAddr], reach: Reach) -> Result<(), String> {
    if reach == Reach::Anywhere {
        return Ok(());
    }
    let Some((address, what)) = addresses.iter().find_map(|address| Some((address, objection(*address)?))) else {
        return Ok(());
    };
    let leads = match host {
        Host::Literal(_) => format!("{host} is {what}"),
        Host::Name(_) => format!("{host} leads to {address}, which is {what}"),
    };
    Err(format!("{leads}; only the public internet can be reached"))
}

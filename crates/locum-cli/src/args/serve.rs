//! What `locum serve` takes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

/// Where it listens when nobody says otherwise.
const PORT: u16 = 7411;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address and port, or a port of this machine alone; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address, default_value_t = loopback(PORT))]
    pub(crate) listen: SocketAddr,
    /// The file with the token that clients must show; made if it is not there
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// A further name under which clients reach it
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Print the OpenAPI document of the server and end
    #[arg(long)]
    pub(crate) openapi: bool,
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(loopback);
    port.or_else(|_| text.parse()).map_err(|_| "write a port, or an address with one such as 127.0.0.1:7411".to_owned())
}

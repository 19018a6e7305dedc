//! The MCP door, on the official SDK: the tools of a face over standard input and output, and over HTTP for the server.
//! The only module that knows the SDK.

pub(crate) mod asking;
mod call;
mod connection;
pub(crate) mod http;
mod lists;
mod pace;
mod prompts;
mod repeat;
mod resources;
mod server;
mod subscriptions;
mod tasks;
mod tools;

use std::sync::Arc;

use anyhow::Context as _;
use locum::asking::Asker;
use locum::faces::Face;
use locum::{Executor, Stay};
use rmcp::ServiceExt as _;
use tokio_util::sync::CancellationToken;

use self::asking::Clients;
use self::connection::Connection;
use self::server::{House, Place, Server};
use crate::args::Global;
use crate::door::{Door, Orchestrator};
use crate::output::{Exit, Output};

/// Serves one connection, then hands unfinished tasks on.
pub(crate) async fn serve(face: Face, global: &Global, output: Output) -> anyhow::Result<Exit> {
    let clients = Arc::new(Clients::default());
    let asker = Some(Arc::clone(&clients) as Arc<dyn Asker>);
    let door = Door::open_asking(global, output, Orchestrator::Model, Executor::InProcess, asker)?;
    let desk = door.opened.desk;
    desk.follow_agent_files();
    desk.adopt_orphans(Stay::Long).await.context("tasks of this session cannot be taken up")?;
    let left = CancellationToken::new();
    let server = Server::alone(Place { face, desk: desk.clone() }, House::new(left.clone(), clients));
    let (input, output) = rmcp::transport::io::stdio_pipes();
    // A client that leaves before it has said hello has nothing unfinished.
    if let Ok(running) = server.serve(Connection::new(input, output, left)).await {
        running.waiting().await.context("the connection ended badly")?;
    }
    desk.close().await.context("unfinished tasks could not be handed on")?;
    Ok(Exit::Done)
}

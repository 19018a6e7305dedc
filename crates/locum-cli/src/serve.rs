//! The HTTP door: `locum serve`. One process for a user's clients, whatever they are written in; the only module that
//! knows axum.

mod abandoned;
mod agents;
mod answer;
mod board;
mod connections;
mod context;
mod dashboard;
mod events;
mod guard;
mod hall;
mod instance;
mod mcp;
mod metrics;
mod openapi;
mod parameters;
mod requests;
mod routes;
mod sessions;
mod tasks;
mod token;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context as _;
use locum::asking::Asker;
use locum::{Executor, Stay};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use self::connections::Connections;
use self::guard::Guard;
use self::hall::Hall;
use self::instance::Instance;
pub(crate) use self::parameters::SESSION_HEADER;
pub(crate) use self::token::{Token, read as read_token};
use crate::args::{Global, ServeArgs};
use crate::door::{Door, Orchestrator};
use crate::mcp::asking::Clients;
use crate::output::{Exit, Output};

/// How long a request under way may still take when the server is told to end: enough for what needs no waiting.
const LEAVING: Duration = Duration::from_millis(300);

/// Serves until the process is told to end, then hands unfinished tasks on.
pub(crate) async fn serve(args: ServeArgs, global: &Global, output: Output) -> anyhow::Result<Exit> {
    if args.openapi {
        output.answer(&serde_json::to_string_pretty(&openapi::document())?);
        return Ok(Exit::Done);
    }
    // From here on a signal is a wish to end, not an end.
    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    let clients = Arc::new(Clients::default());
    let asker = Some(Arc::clone(&clients) as Arc<dyn Asker>);
    let door = Door::open_asking(global, output, Orchestrator::Model, Executor::InProcess, asker)?;
    let (names_session, opened) = (door.names_session(), door.opened);
    let mut instance = Instance::take(&opened.places)?;
    let token_file = args.token_file.unwrap_or_else(|| opened.places.server_token());
    let token = token::find_or_make(&token_file)?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let desk = opened.desk;
    desk.follow_agent_files();
    adopt_all(&desk).await?;
    let (forsaken, abandoned) = tokio::sync::mpsc::channel(abandoned::WAITING_MAX);
    let hall = Arc::new(Hall::new(desk.clone(), names_session, forsaken, clients));
    let dashboard = token.in_address(&format!("http://{address}/"));
    let router = routes::router(&hall, Guard::new(token, address, args.host));
    instance.note(&format!("http://{address}"), &desk.session().project)?;
    announce(output, address, &token_file);
    if output.is_live() {
        // A person who sits there may see the token; what a program keeps of this may not.
        output.note(&format!("the dashboard is at {dashboard}"));
    }

    let connections = Connections::new(listener, router);
    let told = async {
        poll_fn(|context| match signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        hall.closing.cancel();
    };
    // What tasks of other processes say is shown as well.
    let overhearing = hall.closing.run_until_cancelled(desk.overhear());
    tokio::join!(connections.accept(&hall.closing), abandoned::end_forsaken(&hall, abandoned), told, overhearing);
    tokio::time::sleep(LEAVING).await;
    hall.closed.cancel();
    connections.end().await;
    instance.forget();
    let unfinished = desk.close().await.context("unfinished tasks could not be handed on")?;
    if unfinished > 0 {
        output.note(&format!("{unfinished} unfinished tasks were handed on"));
    }
    Ok(Exit::Done)
}

/// Goes on with what earlier processes left behind in any session of the project.
async fn adopt_all(desk: &locum::Desk) -> anyhow::Result<()> {
    let sessions = desk.sessions().await.map_err(|refusal| anyhow::anyhow!(refusal.message))?;
    for session in sessions.into_iter().filter(|session| session.unfinished > 0) {
        desk.in_session(session.id).adopt_orphans(Stay::Long).await.context("orphaned tasks cannot be taken up")?;
    }
    Ok(())
}

fn announce(output: Output, address: SocketAddr, token_file: &std::path::Path) {
    let url = format!("http://{address}");
    if output.is_json() {
        output.json(&json!({"url": url, "token_file": token_file, "pid": std::process::id()}));
        return;
    }
    output.answer(&url);
    output.note(&format!("clients show the token in {}", token_file.display()));
    if !address.ip().is_loopback() {
        output.warn("others can reach this address, and what is sent to it is not encrypted");
    }
}

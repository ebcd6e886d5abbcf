//! The server: the page and the packages of cases, for this user's browser and nobody else.
//!
//! It listens on one address, by default of this machine alone. `guard` decides what a request may have; nothing in it
//! ever becomes the name of a file. Packages are made when they are asked for, one at a time. `connections` closes those
//! that keep others out.

mod answer;
mod connections;
mod guard;
mod library;
mod opening;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Result, ViewError};
use answer::ServerState;
use connections::{Activity, Connections, Watched};
use guard::Rules;
pub use library::{Library, Listed};
use opening::OPENING_TIME;

/// What a client may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at once; for a further one, another is closed.
    pub connections: usize,
    /// Connections at once of one client.
    pub connections_of_one: usize,
    /// Fields of the head of a request.
    pub fields: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// How long a client may take for the head of a request, and a connection may wait for the next one.
    pub head_time: Duration,
    /// How long a client may take nothing of an answer.
    pub stall_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_of_one: 192,
            fields: 64,
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(10),
            stall_time: Duration::from_secs(30),
        }
    }
}

/// How long answers on their way may take once the server ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server that has its address.
pub struct Server {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<ServerState>,
    limits: ServerLimits,
}

impl Server {
    /// Takes an address; port 0 means any that is free.
    ///
    /// # Errors
    /// A port that is in use, and an address that this machine does not have.
    pub fn bind(host: IpAddr, port: u16, library: Library, limits: ServerLimits) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| ViewError::Start(error.to_string()))?;
        let address = SocketAddr::new(host, port);
        let listen = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => ViewError::PortInUse { address },
            _ => ViewError::Listen { address, source },
        };
        let listener = {
            let _inside = runtime.enter();
            listener(address).map_err(listen)?
        };
        let address = listener.local_addr().map_err(listen)?;
        let state = Arc::new(ServerState::new(Rules::new(address)?, library)?);
        Ok(Self { runtime, listener, address, state, limits })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What a client must know.
    pub fn token(&self) -> &str {
        self.state.token()
    }

    /// The address of the page, with the token in its fragment, which browsers keep to themselves.
    pub fn url(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token())
    }

    /// An address that leads to [`Server::url`], once and within two minutes.
    pub fn opening_url(&self) -> String {
        format!("http://{}/open/{}", self.address, self.state.opening().code())
    }

    /// Writes a page into a folder that leads a browser to [`Server::opening_url`], and that only this user can read: other users
    /// of the machine see what a browser is started with. The page is removed once the address was used, and when
    /// the server ends; so is the folder, if it is empty then.
    ///
    /// # Errors
    /// [`ViewError::OpeningFile`] when the folder cannot be made or belongs to somebody else.
    pub fn write_opening_page(&self, folder: &Path) -> Result<PathBuf> {
        self.state.opening().write_file(folder, &self.opening_url())
    }

    /// Serves until something happens, and a moment longer for answers that are on their way.
    pub fn run(self, until: impl Future<Output = ()>) {
        let Self { runtime, listener, state, limits, .. } = self;
        let mut connections = Connections::new(limits.connections, limits.connections_of_one);
        runtime.block_on(async {
            tokio::select! {
                () = accept(&listener, &state, &mut connections, limits) => {}
                () = until => {}
            }
            drop(listener);
            let _ = tokio::time::timeout(FAREWELL, connections.all_ended()).await;
        });
    }

    /// Serves until the user or the system asks for the end (Ctrl-C, SIGTERM). Does `first` once such signals no longer end the
    /// program at once, so that what it writes is removed again.
    ///
    /// # Errors
    /// When signals cannot be received.
    pub fn run_until_stopped(self, first: impl FnOnce(&Self)) -> Result<()> {
        let stopped = {
            let _inside = self.runtime.enter();
            stopped().map_err(|error| ViewError::Start(error.to_string()))?
        };
        first(&self);
        self.run(stopped);
        Ok(())
    }
}

/// Connections that may wait to be taken. The system loses further ones, whose clients try again only after a second.
const BACKLOG: u32 = 4096;

/// Takes an address.
fn listener(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What ends the server: from now on such a signal no longer ends the program.
fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Takes connections for ever.
async fn accept(
    listener: &TcpListener,
    state: &Arc<ServerState>,
    connections: &mut Connections,
    limits: ServerLimits,
) {
    let mut opening_time = pin!(tokio::time::sleep(OPENING_TIME));
    loop {
        tokio::select! {
            taken = listener.accept() => match taken {
                Ok((stream, client)) => {
                    connections.add(client.ip(), |activity| converse(stream, state.clone(), activity, limits));
                    // A request that is there already is answered before further connections are taken.
                    tokio::task::yield_now().await;
                }
                // Such as too many open files: what is open must close first.
                Err(_) => {
                    let pause = if connections.close_any() { 1 } else { 100 };
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
            },
            () = connections.ended() => {}
            () = &mut opening_time, if !opening_time.is_elapsed() => state.opening().close(),
        }
    }
}

/// Answers one connection.
async fn converse(stream: TcpStream, state: Arc<ServerState>, activity: Activity, limits: ServerLimits) {
    let stream = TokioIo::new(Watched::new(stream, activity.clone()));
    let service = service_fn(|request| {
        let (state, activity) = (&state, &activity);
        async move { Ok::<_, Infallible>(state.answer(request, activity).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.fields)
        .max_buf_size(limits.head_bytes);
    // What goes wrong on a connection is the client's affair.
    tokio::select! {
        _ = server.serve_connection(stream, service) => {}
        () = activity.stalled(limits.stall_time) => {}
    }
}

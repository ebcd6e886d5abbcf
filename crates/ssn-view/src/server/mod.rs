//! The server: the page and the packages of cases, for this user's browser and nobody else.
//!
//! It listens on one address, by default of this machine alone. `guard` decides what a request may have; nothing in it
//! ever becomes the name of a file. Packages are made on request, one at a time.

mod answer;
mod guard;
mod library;
mod opening;

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::SockRef;
use ssn_io::{Error, ErrorKind, Result};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use answer::ServerState;
use guard::Rules;
pub use library::{Library, Listed};
use opening::OPENING_TIME;

/// Limits on clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Open connections; further ones wait for one to close.
    pub connections: usize,
    /// Fields of the head of a request.
    pub fields: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Time for the head of a request, and for the wait of an idle connection.
    pub head_time: Duration,
    /// For a client to read what was sent.
    pub stall_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 512,
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
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot_start)?;
        let address = SocketAddr::new(host, port);
        let listen = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => {
                Error::usage(format!("port {} of {} is in use", address.port(), address.ip()))
                    .advise("choose another with --port, or leave it out for any free one")
            }
            _ => Error::new(ErrorKind::Io, format!("cannot serve at {address}: {source}"))
                .advise("choose another address with --host or --port")
                .caused_by(source),
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
        format!("http://{}/#token={}", self.local_address(), self.token())
    }

    /// An address that leads to [`Server::url`], once and within two minutes.
    pub fn opening_url(&self) -> String {
        format!("http://{}/open/{}", self.local_address(), self.state.opening().code())
    }

    /// Returns the address by which this machine reaches the server.
    fn local_address(&self) -> SocketAddr {
        let host = match self.address.ip() {
            IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            host => host,
        };
        SocketAddr::new(host, self.address.port())
    }

    /// Writes a page into a folder that leads a browser to [`Server::opening_url`], and that only this user can read: other users
    /// of the machine see what a browser is started with. The page is removed once the address was used, and when
    /// the server ends; so is the folder, if it is empty then.
    ///
    /// # Errors
    /// When the folder cannot be made or belongs to somebody else.
    pub fn write_opening_page(&self, folder: &Path) -> Result<PathBuf> {
        self.state.opening().write_file(folder, &self.opening_url())
    }

    /// Serves until something happens, and a moment longer for answers that are on their way.
    pub fn run(self, until: impl Future<Output = ()>) {
        let Self { runtime, listener, state, limits, .. } = self;
        let mut connections = JoinSet::new();
        runtime.block_on(async {
            tokio::select! {
                () = accept(&listener, &state, &mut connections, limits) => {}
                () = close_opening(&state) => {}
                () = until => {}
            }
            drop(listener);
            let _ = timeout(FAREWELL, async { while connections.join_next().await.is_some() {} }).await;
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
            stopped().map_err(cannot_start)?
        };
        first(&self);
        self.run(stopped);
        Ok(())
    }
}

/// Returns the error of a system that gives the server no place to run.
fn cannot_start(reason: impl Display) -> Error {
    Error::internal(format!("cannot start the server: {reason}"))
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

/// Serves connections forever.
async fn accept(
    listener: &TcpListener,
    state: &Arc<ServerState>,
    connections: &mut JoinSet<()>,
    limits: ServerLimits,
) {
    let free = Arc::new(Semaphore::new(limits.connections));
    loop {
        let Ok(permit) = free.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let state = state.clone();
                connections.spawn(async move {
                    converse(stream, state, limits).await;
                    drop(permit);
                });
            }
            // Too many open files: some of them close.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Closes the opening address after its time.
async fn close_opening(state: &ServerState) {
    sleep(OPENING_TIME).await;
    state.opening().close();
    std::future::pending().await
}

/// Answers one connection.
async fn converse(stream: TcpStream, state: Arc<ServerState>, limits: ServerLimits) {
    // The system ends a connection whose client does not read its answer.
    let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(limits.stall_time));
    let service = service_fn(|request| {
        let state = &state;
        async move { Ok::<_, Infallible>(state.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.fields)
        .max_buf_size(limits.head_bytes);
    // A connection that fails concerns its client only.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

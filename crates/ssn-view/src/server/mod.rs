//! The server: the page and the packages of cases, for this user's browser and nobody else.
//!
//! It listens on one address, by default of this machine alone. `guard` decides what a request may have; nothing in it
//! ever becomes the name of a file. Packages are made when they are asked for, one at a time.

mod answer;
mod guard;
mod library;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Result, ViewError};
use answer::ServerState;
use guard::Rules;
pub use library::{Library, Listed};

/// What a client may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections at once; further ones wait.
    pub connections: usize,
    /// Fields of the head of a request.
    pub fields: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// How long a client may take for the head of a request.
    pub head_time: Duration,
    /// How long a connection may live.
    pub lifetime: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            fields: 64,
            head_bytes: 16 << 10,
            head_time: Duration::from_secs(10),
            lifetime: Duration::from_secs(15 * 60),
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
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(listen)?;
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

    /// An address that leads to [`Server::url`], once: other users of the machine may see what programs are started with.
    pub fn opening_url(&self) -> String {
        format!("http://{}/open/{}", self.address, self.state.opening_code())
    }

    /// Serves until something happens, and a moment longer for answers that are on their way.
    pub fn run(self, until: impl Future<Output = ()>) {
        let Self { runtime, listener, state, limits, .. } = self;
        let slots = Arc::new(Semaphore::new(limits.connections));
        runtime.block_on(async {
            tokio::select! {
                () = accept(&listener, &state, &slots, limits) => {}
                () = until => {}
            }
            drop(listener);
            // When every slot is free, every connection is closed.
            let closed = slots.acquire_many(limits.connections as u32);
            let _ = tokio::time::timeout(FAREWELL, closed).await;
        });
        // A package that is being made for nobody does not hold up the end.
        runtime.shutdown_background();
    }

    /// Serves until the user or the system asks for the end (Ctrl-C, SIGTERM).
    ///
    /// # Errors
    /// When signals cannot be received.
    pub fn run_until_stopped(self) -> Result<()> {
        let signals = {
            let _inside = self.runtime.enter();
            Signals::new().map_err(|error| ViewError::Start(error.to_string()))?
        };
        self.run(signals.any());
        Ok(())
    }
}

/// The signals that end the server.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    async fn any(mut self) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn any(self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// Takes connections for ever.
async fn accept(
    listener: &TcpListener,
    state: &Arc<ServerState>,
    slots: &Arc<Semaphore>,
    limits: ServerLimits,
) {
    loop {
        // The semaphore is never closed.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, state.clone(), slot, limits));
            }
            // Such as too many open files: what is open must close first.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers one connection.
async fn converse(
    stream: TcpStream,
    state: Arc<ServerState>,
    slot: OwnedSemaphorePermit,
    limits: ServerLimits,
) {
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(state.answer(request).await) }
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_headers(limits.fields)
        .max_buf_size(limits.head_bytes);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // What goes wrong on a connection is the client's affair.
    let _ = tokio::time::timeout(limits.lifetime, connection).await;
    drop(slot);
}

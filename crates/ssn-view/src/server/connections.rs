//! The connections of a server, and which of them makes room for a new one.
//!
//! A new connection is always taken: where there are too many, another one is closed. Those that got nothing for a while
//! go first, and of them those that never showed the token, the oldest first. So neither idle connections nor slow
//! clients keep others out, and a download that goes on is not cut.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, Id, JoinSet};

/// How long a connection may have got nothing before it makes room for others first.
const GRACE: Duration = Duration::from_secs(1);

/// What a connection is doing.
#[derive(Debug, Clone, Copy)]
struct Doing {
    /// Whether a request on it had the token.
    has_token: bool,
    /// Whether an answer is being made.
    is_answered: bool,
    /// When it last got something: what a client sends does not count, or a byte now and then would keep it alive.
    since: Instant,
    /// Whether the client does not take what it is sent.
    is_blocked: bool,
}

impl Doing {
    /// The smallest makes room first.
    fn rank(&self, now: Instant) -> (bool, bool, bool, Instant) {
        let is_fresh = now.saturating_duration_since(self.since) < GRACE;
        (self.is_answered, is_fresh, self.has_token, self.since)
    }
}

/// What a connection is doing, shared by those who work on it.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<Doing>>);

impl Activity {
    fn new() -> Self {
        let since = Instant::now();
        Self(Arc::new(Mutex::new(Doing { has_token: false, is_answered: false, since, is_blocked: false })))
    }

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An answer is being made.
    pub(super) fn begin_answer(&self, has_token: bool) {
        let mut doing = self.doing();
        doing.has_token |= has_token;
        (doing.is_answered, doing.since) = (true, Instant::now());
    }

    /// An answer is made, and is sent from now on.
    pub(super) fn end_answer(&self) {
        let mut doing = self.doing();
        (doing.is_answered, doing.since) = (false, Instant::now());
    }

    /// Ends when the client has taken nothing of an answer for so long.
    pub(super) async fn stalled(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit / 4).await;
            let doing = *self.doing();
            if doing.is_blocked && doing.since.elapsed() >= limit {
                return;
            }
        }
    }
}

/// A stream whose progress is watched.
pub(super) struct Watched {
    stream: TcpStream,
    activity: Activity,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, activity: Activity) -> Self {
        Self { stream, activity }
    }

    /// Takes down whether the client took something.
    fn note(&self, written: &Poll<io::Result<usize>>) {
        let mut doing = self.activity.doing();
        doing.is_blocked = written.is_pending();
        if written.is_ready() {
            doing.since = Instant::now();
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.activity.doing().is_blocked {
            // What the client has not taken by now is not kept for it: the system would hold megabytes.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// One connection.
struct Open {
    client: IpAddr,
    activity: Activity,
    task: AbortHandle,
}

/// All connections.
pub(super) struct Connections {
    most: usize,
    most_of_one: usize,
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
}

impl Connections {
    /// None so far; at most so many, and so many of one client.
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self { most, most_of_one, tasks: JoinSet::new(), open: HashMap::new() }
    }

    /// Serves a connection of a client, and closes others where they are too many.
    pub(super) fn add<F>(&mut self, address: IpAddr, serve: impl FnOnce(Activity) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let client = client(address);
        if self.open.values().filter(|open| open.client == client).count() >= self.most_of_one {
            self.close_one(|open| open.client == client);
        }
        if self.open.len() >= self.most {
            self.close_one(|_| true);
        }
        let activity = Activity::new();
        let task = self.tasks.spawn(serve(activity.clone()));
        self.open.insert(task.id(), Open { client, activity, task });
    }

    /// Closes the connection that needs to stay least, of any client; tells whether there was one.
    pub(super) fn close_any(&mut self) -> bool {
        self.close_one(|_| true)
    }

    fn close_one(&mut self, may: impl Fn(&Open) -> bool) -> bool {
        let now = Instant::now();
        let all = self.open.iter().filter(|(_, open)| may(open));
        let Some((&id, _)) = all.min_by_key(|(_, open)| open.activity.doing().rank(now)) else {
            return false;
        };
        if let Some(open) = self.open.remove(&id) {
            open.task.abort();
        }
        true
    }

    /// Waits until a connection ends, for ever if there is none.
    pub(super) async fn ended(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            None => return pending().await,
            Some(Ok((id, ()))) => id,
            // What went wrong on a connection is its client's affair.
            Some(Err(error)) => error.id(),
        };
        self.open.remove(&id);
    }

    /// Waits until every connection has ended.
    pub(super) async fn all_ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Who an address belongs to: of IPv6, one machine has 2⁶⁴ of them.
fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_makes_room_first() {
        let now = Instant::now();
        let ago = |milliseconds| now - Duration::from_millis(milliseconds);
        let doing =
            |has_token, is_answered, since| Doing { has_token, is_answered, since, is_blocked: false };
        let expected = [
            doing(false, false, ago(3000)),
            doing(false, false, ago(2000)),
            doing(true, false, ago(4000)),
            doing(true, false, ago(2000)),
            doing(false, false, ago(100)),
            doing(true, false, ago(200)),
            doing(true, true, ago(5000)),
        ];
        assert!(expected.windows(2).all(|pair| pair[0].rank(now) < pair[1].rank(now)));
    }

    #[test]
    fn one_client_leaves_room_for_others() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut connections = Connections::new(8, 6);
            let (one, other) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            connections.add(other, |_| pending());
            for _ in 0..20 {
                connections.add(one, |_| pending());
            }
            let count = |connections: &Connections, client: IpAddr| {
                connections.open.values().filter(|open| open.client == client).count()
            };
            assert_eq!((count(&connections, one), count(&connections, other)), (6, 1));
            for last in 3..20 {
                connections.add([10, 0, 0, last].into(), |_| pending());
            }
            assert_eq!(connections.open.len(), 8);
            assert!((0..8).all(|_| connections.close_any()) && !connections.close_any());
            connections.all_ended().await;
        });
    }

    #[test]
    fn machines_have_many_addresses() {
        let of = |text: &str| client(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}

//! Sending a request to whoever can answer it, as often as need be.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use verbatim_wire::ApiKey;
use verbatim_wire::client::{ClientError, Connection};
use verbatim_wire::protocol::Request;

use super::link::Link;
use super::tries::{Fault, is_passing};
use super::types::{ClusterError, Partition, PartitionInfo};
use super::{Cluster, Topics};

impl Cluster {
    /// Asks a partition's leader: in the highest common version from `version_min` on, with a request made for the leader and
    /// the version. `read` takes what it wants from the answer, or says which error code is in it; while that may pass
    /// the leader is looked for anew and the question repeated. `what` names the question in errors.
    ///
    /// # Errors
    /// As [`Cluster::partition`].
    pub async fn call_leader<R: Request, T>(
        &self,
        what: &str,
        partition: &Partition,
        version_min: i16,
        build: impl Fn(&PartitionInfo, i16) -> R,
        read: impl Fn(R::Response) -> Result<T, i16>,
    ) -> Result<T, ClusterError> {
        let (build, read) = (&build, &read);
        self.repeat(what.to_owned(), |anew| async move {
            let (leader, link) = self.leader(partition, anew).await?;
            let (connection, version) = self.reach::<R>(&link, version_min).await?;
            let answer = send(&link, &connection, version, &build(&leader, version)).await?;
            read(answer).map_err(|code| Fault::of_code(what, code))
        })
        .await
    }

    /// Asks any broker. `code` finds the error code in an answer: while it may pass the question is repeated, to the next
    /// broker; an answer with any other is returned, for the caller to read.
    ///
    /// # Errors
    /// Whatever did not pass in time.
    pub async fn call_any<R: Request>(
        &self,
        what: &str,
        version_min: i16,
        request: &R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClusterError> {
        let code = &code;
        self.repeat(what.to_owned(), |_| async move {
            passing(what, self.ask_any(version_min, request).await?, code)
        })
        .await
    }

    /// Asks the broker that changes of the cluster are asked of (CreateTopics, CreatePartitions, IncrementalAlterConfigs), as
    /// [`Cluster::call_any`] does. A request whose answer was lost is sent again, so that it may find its own work done.
    ///
    /// # Errors
    /// As [`Cluster::call_any`].
    pub async fn call_controller<R: Request>(
        &self,
        what: &str,
        version_min: i16,
        request: &R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClusterError> {
        let code = &code;
        self.repeat(what.to_owned(), |anew| async move {
            let link = self.controller(anew).await?;
            passing(what, self.ask(&link, version_min, request).await?, code)
        })
        .await
    }

    /// Asks one broker, such as a group's coordinator, as [`Cluster::call_any`] does. For a code that means that another
    /// broker must be asked (16) let `code` answer 0.
    ///
    /// # Errors
    /// As [`Cluster::call_any`]; a broker of this id that does not appear in time is [`ClusterError::Unavailable`].
    pub async fn call_broker<R: Request>(
        &self,
        node: i32,
        what: &str,
        version_min: i16,
        request: &R,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response, ClusterError> {
        let code = &code;
        self.repeat(what.to_owned(), |anew| async move {
            let known = self.known().node(node);
            if known.is_err() || anew {
                self.ask_topics(Topics::Named(&[])).await?;
            }
            let link = self.known().node(node)?;
            passing(what, self.ask(&link, version_min, request).await?, code)
        })
        .await
    }

    /// Asks until there is an answer, or what goes wrong does not pass; after a failure `anew`, as what is known of brokers and
    /// leaders may be the reason.
    pub(super) async fn repeat<T, A: Future<Output = Result<T, Fault>>>(
        &self,
        what: String,
        ask: impl Fn(bool) -> A,
    ) -> Result<T, ClusterError> {
        let mut tries = self.tries(what);
        loop {
            match ask(!tries.is_first()).await {
                Ok(answer) => return Ok(answer),
                Err(fault) => tries.failed(fault).await?,
            }
        }
    }

    /// The controller's link; any broker's where the cluster names none.
    async fn controller(&self, anew: bool) -> Result<Arc<Link>, Fault> {
        if anew || self.known().nodes().next().is_none() {
            self.ask_topics(Topics::Named(&[])).await?;
        }
        let known = self.known();
        let any = || known.nodes().next().map(|(_, link)| Arc::clone(link));
        let found = known.node(known.controller()).ok().or_else(any);
        found.ok_or_else(|| Fault::Passing("the cluster names no brokers".to_owned()))
    }

    /// Asks one broker after another until one answers, beginning with those that are connected, in turn; then the bootstrap
    /// addresses.
    pub(super) async fn ask_any<R: Request>(
        &self,
        version_min: i16,
        request: &R,
    ) -> Result<R::Response, Fault> {
        let mut links: Vec<Arc<Link>> = self.known().nodes().map(|(_, link)| Arc::clone(link)).collect();
        let known = links.len();
        let turn = self.inner.turn.fetch_add(1, Ordering::Relaxed);
        links.rotate_left(turn.checked_rem(known).unwrap_or(0));
        links.sort_by_key(|link| !link.is_up());
        links.extend(self.inner.bootstrap.iter().map(Arc::clone));
        let mut fault = Fault::Passing("no address to connect to".to_owned());
        for (index, link) in links.iter().enumerate() {
            match self.ask(link, version_min, request).await {
                Ok(answer) => {
                    if index < known {
                        self.close_bootstrap().await;
                    }
                    return Ok(answer);
                }
                Err(failed) => fault = failed,
            }
        }
        Err(fault)
    }

    /// Connections to bootstrap addresses are not needed while brokers answer under their own.
    async fn close_bootstrap(&self) {
        for link in self.inner.bootstrap.iter().filter(|link| link.is_up()) {
            link.close().await;
        }
    }

    /// One question to one broker.
    pub(super) async fn ask<R: Request>(
        &self,
        link: &Link,
        version_min: i16,
        request: &R,
    ) -> Result<R::Response, Fault> {
        let (connection, version) = self.reach::<R>(link, version_min).await?;
        send(link, &connection, version, request).await
    }

    /// A connection, and the version in which it takes a request.
    async fn reach<R: Request>(
        &self,
        link: &Link,
        version_min: i16,
    ) -> Result<(Arc<Connection>, i16), Fault> {
        let connection = link.connection(&self.inner.config).await?;
        let version = version_of::<R>(&connection, version_min)?;
        Ok((connection, version))
    }
}

async fn send<R: Request>(
    link: &Link,
    connection: &Arc<Connection>,
    version: i16,
    request: &R,
) -> Result<R::Response, Fault> {
    let answer = connection.send(version, request).await;
    if matches!(answer, Err(ClientError::Timeout { .. })) {
        link.forget(connection).await;
    }
    Ok(answer?)
}

/// The highest version from `version_min` on that a broker and this program have in common.
pub(crate) fn version_of<R: Request>(connection: &Connection, version_min: i16) -> Result<i16, ClientError> {
    let key = ApiKey::from_number(R::KEY).ok_or(ClientError::UnknownApi(R::KEY))?;
    connection.versions().highest(key, version_min, key.api().max)
}

/// Makes a fault of an answer whose error code may pass.
fn passing<A>(what: &str, answer: A, code: impl Fn(&A) -> i16) -> Result<A, Fault> {
    let code = code(&answer);
    if is_passing(code) { Err(Fault::of_code(what, code)) } else { Ok(answer) }
}

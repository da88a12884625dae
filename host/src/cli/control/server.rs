//! The side that answers, in a running host.
//!
//! The socket and the TCP address have rooms of their own: whoever reaches the address without a token takes nothing from who
//! may open the socket. In each room few are listened to, for a short time, and fewer are answered.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
    BufReader,
};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use verbatim::engine::{Digest, MAX_MODULE_LEN};
use verbatim::modules::Asker;

use super::super::Usage;
use super::{Answer, Ask, QUESTION_LEN_MAX, Question, SOCKET, socket};

/// How long a question without its module may take to come in, over the socket.
const QUESTION_MAX: Duration = Duration::from_secs(30);
/// The same over TCP, where anybody may ask.
const REMOTE_QUESTION_MAX: Duration = Duration::from_secs(5);
/// How long a module may take to come in.
const MODULE_MAX: Duration = Duration::from_secs(30);
/// How long whoever asked may take to read a line of the answer.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// Connections that are told of an error and seen off.
const REFUSED_MAX: usize = 32;
/// How long they are.
const REFUSED_LINGER: Duration = Duration::from_secs(1);
/// A token has at least this many characters: it is all that stands between the network and the modules.
const TOKEN_LEN_MIN: usize = 16;

/// A TCP address, and what must be told there.
#[derive(Debug)]
pub(in super::super) struct Remote {
    pub(in super::super) listen: SocketAddr,
    pub(in super::super) token: Digest,
}

/// Reads the token's file.
pub(in super::super) fn token(file: &Path) -> Result<Digest, Usage> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Usage(format!("token file cannot be read, control-token-file=`{shown}`: {error}"))
    })?;
    if text.trim().len() < TOKEN_LEN_MIN {
        return Err(Usage(format!(
            "a token has at least {TOKEN_LEN_MIN} characters, control-token-file=`{shown}`"
        )));
    }
    let mode = std::fs::metadata(file).map(|file| file.permissions().mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        let mode = format!("{:o}", mode & 0o777);
        tracing::warn!(control_token_file = %shown, mode, "others than the owner may read the token: give its file mode 600");
    }
    Ok(Digest::of(text.trim().as_bytes()))
}

/// Answers one question, telling of progress meanwhile. It is called on a thread that may wait.
pub(in super::super) type Answering = dyn Fn(Ask, Vec<u8>, &dyn Asker) -> Answer + Send + Sync;

/// A host's ears.
#[derive(Debug)]
pub(in super::super) struct Control {
    stop: CancellationToken,
    running: JoinSet<()>,
    /// The socket, if there is one.
    socket: Option<PathBuf>,
    /// Where it listens for TCP.
    pub(in super::super) remote: Option<SocketAddr>,
}

impl Control {
    /// Listens in the data folder, which this process holds, and on the address. A host serves without the socket, too.
    pub(in super::super) async fn start(
        data: &Path,
        remote: Option<Remote>,
        answering: Arc<Answering>,
    ) -> anyhow::Result<Self> {
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        let mut address = None;
        if let Some(Remote { listen, token }) = remote {
            let listener = TcpListener::bind(listen)
                .await
                .with_context(|| format!("cannot listen, control-listen=`{listen}`"))?;
            address = Some(listener.local_addr()?);
            let room = Room::remote(Arc::clone(&answering), token);
            running.spawn(accept(stop.clone(), async move || Ok(listener.accept().await?.0), room));
        }
        let mut socket = Some(data.join(SOCKET));
        match socket::bind(data) {
            Ok(listener) => {
                let room = Room::local(answering);
                running.spawn(accept(stop.clone(), async move || Ok(listener.accept().await?.0), room));
            }
            Err(error) => {
                let path = socket.take().unwrap_or_default();
                tracing::warn!(%error, socket = %path.display(), "no control socket: `verbatim module swap` and its like do not reach this host there until it is started again without what hinders it");
            }
        }
        Ok(Self { stop, running, socket, remote: address })
    }

    /// Takes no more questions, and abandons swaps that changed nothing yet.
    pub(in super::super) async fn stop(mut self) {
        self.stop.cancel();
        while self.running.join_next().await.is_some() {}
        if let Some(socket) = self.socket {
            // One that stays is replaced by the next start.
            let _ = std::fs::remove_file(socket);
        }
    }
}

async fn accept<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stop: CancellationToken,
    mut next: impl AsyncFnMut() -> io::Result<S>,
    room: Room,
) {
    let (room, mut connections) = (Arc::new(room), JoinSet::new());
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = connections.join_next() => {}
            accepted = next() => match accepted {
                Ok(stream) => {
                    connections.spawn(Arc::clone(&room).converse(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "a control connection cannot be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
}

/// What there is for those who come by one way.
struct Room {
    answering: Arc<Answering>,
    /// What must be told.
    token: Option<Digest>,
    /// How long a question may take to come in.
    question_max: Duration,
    /// Those who are listened to.
    heard: Semaphore,
    /// Those who are answered.
    answered: Semaphore,
    /// Those who are seen off.
    refused: Semaphore,
}

/// Whoever waits for the answer, as the thread that answers sees him.
struct Connection {
    progress: mpsc::UnboundedSender<String>,
    gone: CancellationToken,
}

impl Asker for Connection {
    fn tell(&self, step: String) {
        // Nobody may be listening any more.
        let _ = self.progress.send(step);
    }

    fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }
}

impl Room {
    fn local(answering: Arc<Answering>) -> Self {
        Self::new(answering, None, QUESTION_MAX, (16, 8))
    }

    fn remote(answering: Arc<Answering>, token: Digest) -> Self {
        Self::new(answering, Some(token), REMOTE_QUESTION_MAX, (8, 4))
    }

    fn new(
        answering: Arc<Answering>,
        token: Option<Digest>,
        question_max: Duration,
        (heard, answered): (usize, usize),
    ) -> Self {
        let [heard, answered, refused] = [heard, answered, REFUSED_MAX].map(Semaphore::new);
        Self { answering, token, question_max, heard, answered, refused }
    }

    async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send>(self: Arc<Self>, stream: S) {
        let mut stream = BufReader::new(stream);
        match self.hear(&mut stream).await {
            Ok((ask, module, _place)) => self.answer(ask, module, &mut stream).await,
            Err(answer) => self.refuse(&answer, &mut stream).await,
        }
    }

    /// The question, its module, and a place among those who are answered; or the answer that there is none.
    async fn hear(
        &self,
        stream: &mut (impl AsyncBufRead + Unpin),
    ) -> Result<(Ask, Vec<u8>, SemaphorePermit<'_>), Answer> {
        let busy = |_| Answer::Failed("the host is busy with other questions: ask again".to_owned());
        let heard = self.heard.try_acquire().map_err(busy)?;
        let (question_max, late) = (self.question_max, |max| format!("not whole within {max:?}"));
        let ask = timeout(question_max, question(stream, self.token)).await;
        let ask = ask.unwrap_or_else(|_| Err(format!("the question is {}", late(question_max))));
        let ask = ask.map_err(Answer::Wrong)?;
        let place = self.answered.try_acquire().map_err(busy)?;
        drop(heard);
        let read = timeout(MODULE_MAX, module(stream, &ask)).await;
        let read = read.unwrap_or_else(|_| Err(format!("the module is {}", late(MODULE_MAX))));
        Ok((ask, read.map_err(Answer::Wrong)?, place))
    }

    async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        ask: Ask,
        module: Vec<u8>,
        stream: &mut BufReader<S>,
    ) {
        let (progress, mut told) = mpsc::unbounded_channel();
        let gone = CancellationToken::new();
        // Also when the host stops.
        let _gone = gone.clone().drop_guard();
        let (answering, asker) = (Arc::clone(&self.answering), Connection { progress, gone: gone.clone() });
        let answering = tokio::task::spawn_blocking(move || answering(ask, module, &asker));
        loop {
            let is_gone = gone.is_cancelled();
            tokio::select! {
                told = told.recv() => match told {
                    None => break,
                    Some(_) if is_gone => {}
                    Some(text) => if write(stream, &Answer::Progress(text)).await.is_err() {
                        gone.cancel();
                    },
                },
                () = hangs_up(stream), if !is_gone => gone.cancel(),
            }
        }
        let answer =
            answering.await.unwrap_or_else(|error| Answer::Failed(format!("the host failed: {error}")));
        // Whoever does not wait for the answer finds it in the history.
        let _ = write(stream, &answer).await;
    }

    /// Tells of an error, and then takes what still comes for a while: what is not read when a connection ends takes the
    /// answer with it.
    async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(&self, answer: &Answer, stream: &mut BufReader<S>) {
        let Ok(_place) = self.refused.try_acquire() else { return };
        if write(stream, answer).await.is_ok() && stream.shutdown().await.is_ok() {
            let most = u64::try_from(MAX_MODULE_LEN).unwrap_or(u64::MAX);
            let _ = timeout(REFUSED_LINGER, hangs_up(&mut stream.take(most))).await;
        }
    }
}

/// Waits until nothing comes any more; what does is not looked at.
async fn hangs_up(stream: &mut (impl AsyncRead + Unpin)) {
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await.is_ok_and(|read| read > 0) {}
}

/// The question; or what is wrong with it.
async fn question(stream: &mut (impl AsyncBufRead + Unpin), token: Option<Digest>) -> Result<Ask, String> {
    let mut line = Vec::new();
    let read = (&mut *stream).take(QUESTION_LEN_MAX).read_until(b'\n', &mut line).await;
    read.map_err(|error| format!("the question cannot be read: {error}"))?;
    let question: Question =
        serde_json::from_slice(&line).map_err(|error| format!("not a question: {error}"))?;
    if let Some(expected) = token {
        // Digests are compared, so that the time it takes tells nothing of the token.
        let told = question.token.map(|token| Digest::of(token.as_bytes()));
        if told != Some(expected) {
            return Err("the token is not the host's".to_owned());
        }
    }
    Ok(question.ask)
}

/// The module that follows it, if one does; or what is wrong with it.
async fn module(stream: &mut (impl AsyncBufRead + Unpin), ask: &Ask) -> Result<Vec<u8>, String> {
    let mut module = Vec::new();
    if let Ask::Swap { length, .. } = *ask {
        let max = u64::try_from(MAX_MODULE_LEN).unwrap_or(u64::MAX);
        if length > max {
            return Err(format!("a module has at most {max} bytes, length=`{length}`"));
        }
        let read = stream.take(length).read_to_end(&mut module).await;
        read.map_err(|error| format!("the module cannot be read: {error}"))?;
        if module.len() as u64 != length {
            return Err(format!("the module is cut short, bytes=`{}`, expected {length}", module.len()));
        }
    }
    Ok(module)
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let written = async {
        stream.write_all(&line).await?;
        stream.flush().await
    };
    timeout(WRITE_MAX, written).await?
}

//! The side that answers, in a running host.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
    BufReader,
};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use verbatim::engine::{Digest, MAX_MODULE_LEN};

use super::super::Usage;
use super::{Answer, Ask, QUESTION_LEN_MAX, Question, SOCKET};

/// Questions that are answered at a time.
const QUESTIONS_MAX: usize = 8;
/// How long a question may take to come in.
const QUESTION_MAX: Duration = Duration::from_secs(30);
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
    Ok(Digest::of(text.trim().as_bytes()))
}

/// Answers one question, telling of progress meanwhile. It is called on a thread that may wait.
pub(in super::super) type Answering = dyn Fn(Ask, Vec<u8>, &dyn Fn(String)) -> Answer + Send + Sync;

/// A host's ears.
#[derive(Debug)]
pub(in super::super) struct Control {
    stop: CancellationToken,
    running: JoinSet<()>,
    socket: PathBuf,
    /// Where it listens for TCP.
    pub(in super::super) remote: Option<SocketAddr>,
}

impl Control {
    /// Listens in the data folder, which this process holds, and on the address.
    pub(in super::super) async fn start(
        data: &Path,
        remote: Option<Remote>,
        answering: Arc<Answering>,
    ) -> anyhow::Result<Self> {
        let socket = data.join(SOCKET);
        let listener = bind(data, &socket)
            .with_context(|| format!("no control socket, socket=`{}`", socket.display()))?;
        let (stop, mut running) = (CancellationToken::new(), JoinSet::new());
        let asked = Arc::new(Asked { answering, room: Semaphore::new(QUESTIONS_MAX) });
        let mut address = None;
        if let Some(Remote { listen, token }) = remote {
            let listener = TcpListener::bind(listen)
                .await
                .with_context(|| format!("cannot listen, control-listen=`{listen}`"))?;
            address = Some(listener.local_addr()?);
            let (stop, asked) = (stop.clone(), Arc::clone(&asked));
            running.spawn(accept(stop, async move || Ok(listener.accept().await?.0), asked, Some(token)));
        }
        running.spawn(accept(stop.clone(), async move || Ok(listener.accept().await?.0), asked, None));
        Ok(Self { stop, running, socket, remote: address })
    }

    /// Takes no more questions. A swap under way goes on to its end, of which nobody is told.
    pub(in super::super) async fn stop(mut self) {
        self.stop.cancel();
        while self.running.join_next().await.is_some() {}
        // A socket that stays is replaced by the next start.
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Binds the socket where nobody else may go, so that it never is there with more rights than it is to have.
fn bind(data: &Path, socket: &Path) -> io::Result<UnixListener> {
    let private = data.join(format!(".control-{}", std::process::id()));
    match std::fs::remove_dir_all(&private) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => DirBuilder::new().mode(0o700).create(&private)?,
    }
    let bound = private.join(SOCKET);
    let listening = UnixListener::bind(&bound).and_then(|listener| {
        std::fs::set_permissions(&bound, Permissions::from_mode(0o600))?;
        std::fs::rename(&bound, socket)?;
        Ok(listener)
    });
    std::fs::remove_dir_all(&private)?;
    listening
}

struct Asked {
    answering: Arc<Answering>,
    room: Semaphore,
}

async fn accept<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stop: CancellationToken,
    mut next: impl AsyncFnMut() -> io::Result<S>,
    asked: Arc<Asked>,
    token: Option<Digest>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = connections.join_next() => {}
            accepted = next() => match accepted {
                Ok(stream) => {
                    connections.spawn(Arc::clone(&asked).converse(stream, token));
                }
                Err(error) => {
                    tracing::warn!(%error, "a control connection cannot be taken");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
}

impl Asked {
    async fn converse<S: AsyncRead + AsyncWrite + Unpin + Send>(
        self: Arc<Self>,
        stream: S,
        token: Option<Digest>,
    ) {
        let Ok(_room) = self.room.try_acquire() else { return };
        let mut stream = BufReader::new(stream);
        let question = tokio::time::timeout(QUESTION_MAX, question(&mut stream, token)).await;
        let question =
            question.unwrap_or_else(|_| Err(format!("the question is not whole within {QUESTION_MAX:?}")));
        // Whoever does not wait for the answer finds it in the history.
        let _ = match question {
            Ok((ask, module)) => self.answer(ask, module, stream.get_mut()).await,
            Err(text) => write(stream.get_mut(), &Answer::Wrong(text)).await,
        };
    }

    async fn answer(
        &self,
        ask: Ask,
        module: Vec<u8>,
        stream: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let (progress, mut told) = mpsc::unbounded_channel();
        let answering = Arc::clone(&self.answering);
        let answering = tokio::task::spawn_blocking(move || {
            // Nobody may be listening any more.
            answering(ask, module, &|text| drop(progress.send(text)))
        });
        while let Some(text) = told.recv().await {
            write(stream, &Answer::Progress(text)).await?;
        }
        let answer =
            answering.await.unwrap_or_else(|error| Answer::Failed(format!("the host failed: {error}")));
        write(stream, &answer).await
    }
}

/// The question and the module that follows it; or what is wrong with it.
async fn question(
    stream: &mut (impl AsyncBufRead + Unpin),
    token: Option<Digest>,
) -> Result<(Ask, Vec<u8>), String> {
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
    let mut module = Vec::new();
    if let Ask::Swap { length, .. } = question.ask {
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
    Ok((question.ask, module))
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

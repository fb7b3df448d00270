//! Blocks of text from a reading thread to whoever takes them, a few at a time.

use std::sync::mpsc::{Receiver, sync_channel};

use crate::error::TraceError;

use super::request::Progress;
use super::source::{Source, TextBlock};

/// Blocks that wait between the reader and the taker, per thread.
const WAITING: usize = 1;

type Message = Result<(TextBlock, u64), TraceError>;

/// Hands `first` and then all that `source` holds to `take`, in order and in groups
/// of at most one block per thread, and tells `progress`. Gives the source back.
///
/// # Errors
/// The first one of reading or of `take`.
pub(super) fn carry(
    mut source: Source,
    first: TextBlock,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[TextBlock]) -> Result<(), TraceError>,
) -> Result<Source, TraceError> {
    let threads = rayon::current_num_threads();
    take(&[first])?;
    if !source.ended() {
        source = std::thread::scope(|scope| {
            let (send, receive) = sync_channel::<Message>(threads * WAITING);
            let reader = scope.spawn(move || {
                loop {
                    let message = match source.block() {
                        Ok(None) => return source,
                        Ok(Some(block)) => Ok((block, source.advanced())),
                        Err(error) => Err(error),
                    };
                    let over = message.is_err();
                    // A closed channel means that taking failed.
                    if send.send(message).is_err() || over {
                        return source;
                    }
                }
            });
            let taken = receive_all(&receive, threads, progress, take);
            drop(receive);
            let source = reader.join().expect("reading does not panic");
            taken.map(|()| source)
        })?;
    }
    progress.advance(source.advanced());
    Ok(source)
}

fn receive_all(
    blocks: &Receiver<Message>,
    threads: usize,
    progress: &dyn Progress,
    take: &mut dyn FnMut(&[TextBlock]) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    loop {
        let group: Result<Vec<(TextBlock, u64)>, TraceError> =
            blocks.iter().take(threads).collect();
        let (group, read): (Vec<TextBlock>, Vec<u64>) = group?.into_iter().unzip();
        if group.is_empty() {
            return Ok(());
        }
        take(&group)?;
        progress.advance(read.iter().sum());
    }
}

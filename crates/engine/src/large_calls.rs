//! Which commands have large requests or replies, for COMMANDLOG. Knows no command.
//!
//! How long a reply is, is known anyway where a batch looks whether its output has room: that is where it is compared. A
//! request's length is compared once for all quick commands that follow one another: none is longer than all.

use crate::args::Args;
use crate::batch::{Call, Target};
use crate::clients::Client;
use crate::command::Flags;
use crate::engine::Engine;
use crate::execute::BatchArgs;
use crate::session::Session;
use crate::worker::Worker;

/// From how many bytes on requests and replies are large, as it is set at one time. No length reaches what -1
/// becomes.
#[derive(Clone, Copy)]
pub(crate) struct LargeSizes {
    pub(crate) request: usize,
    pub(crate) reply: usize,
}

impl Engine {
    /// From how many bytes on requests and replies are large now.
    #[inline]
    pub(crate) fn large_sizes(&self) -> LargeSizes {
        LargeSizes {
            request: self.config.commandlog_request_larger_than() as usize,
            reply: self.config.commandlog_reply_larger_than() as usize,
        }
    }

    /// Notes what is large of a call that has run, with a request and a reply of so many bytes.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_large(
        &self,
        worker: &Worker,
        session: &Session,
        target: &Target,
        args: &Args<'_>,
        large: LargeSizes,
        sizes: (usize, usize),
    ) {
        let (Target::Key(resolved, _) | Target::Other(resolved)) = target else { return };
        // Not what is kept out of the slow log, and not what waits and is not answered yet.
        if resolved.command.flags.any(Flags::SKIP_SLOWLOG) || session.is_parked() {
            return;
        }
        self.add_large(worker.clock.now_ms, &session.client, args, &worker.secrets, large, sizes);
    }

    /// Notes what is large of a command that has waited, or ran in slices, and is answered now with so many bytes.
    pub(crate) fn note_large_answer(&self, now_ms: u64, client: &Client, args: &Args<'_>, reply: usize) {
        self.add_large(now_ms, client, args, &[], self.large_sizes(), (args.wire_len(), reply));
    }

    fn add_large(
        &self,
        now_ms: u64,
        client: &Client,
        args: &Args<'_>,
        secrets: &[usize],
        large: LargeSizes,
        (request, reply): (usize, usize),
    ) {
        if request >= large.request {
            let max_len = self.config.commandlog_large_request_max_len();
            self.large_requests.add(now_ms, request as u64, args, secrets, client, max_len);
        }
        if reply >= large.reply {
            let max_len = self.config.commandlog_large_reply_max_len();
            self.large_replies.add(now_ms, reply as u64, args, secrets, client, max_len);
        }
    }

    /// Notes those of quick calls that have large requests. The first one's arguments and its request begin at these
    /// places.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_large_requests(
        &self,
        worker: &Worker,
        session: &Session,
        batch: BatchArgs<'_>,
        calls: &[Call],
        (mut args_from, mut input_from): (usize, usize),
        request: usize,
    ) {
        for call in calls {
            let asked = request_len(batch, call, input_from);
            if asked >= request {
                let args = batch.of(args_from, call.args_end);
                let large = LargeSizes { request, reply: usize::MAX };
                self.note_large(worker, session, &call.target, &args, large, (asked, 0));
            }
            (args_from, input_from) = (call.args_end, call.input_end);
        }
    }
}

/// Bytes of the request of a call that begins at this place of the input, which long arguments have left: their call is
/// the only one of its batch.
#[inline(always)]
pub(crate) fn request_len(batch: BatchArgs<'_>, call: &Call, input_from: usize) -> usize {
    match batch.bigs {
        [] => call.input_end.saturating_sub(input_from),
        _ => batch.of(0, call.args_end).wire_len(),
    }
}

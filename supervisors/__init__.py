"""OTP for asyncio: typed servers with mailboxes, supervisors, a registry, monitors and introspection."""

from .borrowing import BUSY
from .child_spec import ChildSpec
from .clock import Clock, LoopClock, ManualClock, TimerHandle
from .dynamic_supervisor import DynamicSupervisor
from .errors import (
    AlreadyRegistered,
    AlreadyReplied,
    AlreadyStarted,
    AsyncioOnly,
    CallTimeout,
    ChildExists,
    ChildNotFound,
    CrashSummary,
    DeadlockError,
    InitFailed,
    LinkedServerEnded,
    MailboxFull,
    NotStarted,
    Refusal,
    RestartsExhausted,
    ServerCrashed,
    ServerDown,
    ServerError,
    ServerKilled,
    ServerQuarantined,
    ServerStopped,
    StartIgnored,
    SupervisorError,
    TooManyChildren,
    UnknownMessage,
    WrongLoop,
)
from .events import Event
from .exits import ExitReason
from .gen_server import GenServer
from .introspection import (
    Statistics,
    SystemCallFailed,
    change_code,
    get_state,
    replace_state,
    resume,
    statistics,
    suspend,
    trace,
)
from .mailbox import MailboxSpec
from .messages import IGNORE, NO_REPLY, Call, Cast, Continue, Ignore, handles
from .monitor import Down, Exit, Monitor, monitor
from .ref import ServerRef
from .registry import Registry
from .reply import Deferred, PendingReply
from .restart import Backoff, Exhausted, Intensity, Restart, next_restart, wants_restart
from .serving import TraceEvent
from .supervisor import Supervisor
from .supervisor_base import SupervisorBase
from .swapping import NotPlain, SwapOver, Swapped, plain, swap
from .timers import Timer
from .tree import ChildCounts, ChildInfo

__all__ = [
    "BUSY",
    "IGNORE",
    "NO_REPLY",
    "AlreadyRegistered",
    "AlreadyReplied",
    "AlreadyStarted",
    "AsyncioOnly",
    "Backoff",
    "Call",
    "CallTimeout",
    "Cast",
    "ChildCounts",
    "ChildExists",
    "ChildInfo",
    "ChildNotFound",
    "ChildSpec",
    "Clock",
    "Continue",
    "CrashSummary",
    "DeadlockError",
    "Deferred",
    "Down",
    "DynamicSupervisor",
    "Event",
    "Exhausted",
    "Exit",
    "ExitReason",
    "GenServer",
    "Ignore",
    "InitFailed",
    "Intensity",
    "LinkedServerEnded",
    "LoopClock",
    "MailboxFull",
    "MailboxSpec",
    "ManualClock",
    "Monitor",
    "NotPlain",
    "NotStarted",
    "PendingReply",
    "Refusal",
    "Registry",
    "Restart",
    "RestartsExhausted",
    "ServerCrashed",
    "ServerDown",
    "ServerError",
    "ServerKilled",
    "ServerQuarantined",
    "ServerRef",
    "ServerStopped",
    "StartIgnored",
    "Statistics",
    "Supervisor",
    "SupervisorBase",
    "SupervisorError",
    "SwapOver",
    "Swapped",
    "SystemCallFailed",
    "Timer",
    "TimerHandle",
    "TooManyChildren",
    "TraceEvent",
    "UnknownMessage",
    "WrongLoop",
    "change_code",
    "get_state",
    "handles",
    "monitor",
    "next_restart",
    "plain",
    "replace_state",
    "resume",
    "statistics",
    "suspend",
    "swap",
    "trace",
    "wants_restart",
]

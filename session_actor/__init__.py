"""Conversations that are never lost: supervised asyncio session actors with a durable journal, for async agent servers.

Names are loaded when they are first used, so that `import session_actor` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from session_actor.persistence import FileStore as FileStore
    from session_actor.persistence import Level as Level
    from session_actor.persistence import MemoryStore as MemoryStore
    from session_actor.persistence import RecoveryReport as RecoveryReport
    from session_actor.persistence import SessionInfo as SessionInfo
    from session_actor.persistence import StoreHealth as StoreHealth

    from .blocks import Block as Block
    from .blocks import CallRef as CallRef
    from .blocks import Document as Document
    from .blocks import Image as Image
    from .blocks import Native as Native
    from .blocks import Reference as Reference
    from .blocks import Text as Text
    from .blocks import Thinking as Thinking
    from .blocks import ToolCall as ToolCall
    from .blocks import ToolResult as ToolResult
    from .budget.report import Budget as Budget
    from .budget.reserves import output_reserve as output_reserve
    from .budget.reserves import safety_reserve as safety_reserve
    from .change import Change as Change
    from .commands import AddAssistant as AddAssistant
    from .commands import AddReference as AddReference
    from .commands import AddResponse as AddResponse
    from .commands import AddToolResult as AddToolResult
    from .commands import AddUser as AddUser
    from .commands import BuildRequest as BuildRequest
    from .commands import Checkpoint as Checkpoint
    from .commands import Command as Command
    from .commands import CommitCompaction as CommitCompaction
    from .commands import Configure as Configure
    from .commands import Content as Content
    from .commands import DeleteBranch as DeleteBranch
    from .commands import DeleteCheckpoint as DeleteCheckpoint
    from .commands import End as End
    from .commands import Fork as Fork
    from .commands import Goto as Goto
    from .commands import HoldCall as HoldCall
    from .commands import How as How
    from .commands import NoteArtifact as NoteArtifact
    from .commands import Pin as Pin
    from .commands import Pop as Pop
    from .commands import Push as Push
    from .commands import RenameBranch as RenameBranch
    from .commands import RenameCheckpoint as RenameCheckpoint
    from .commands import RequestFailed as RequestFailed
    from .commands import Retract as Retract
    from .commands import Target as Target
    from .commands import Uncompact as Uncompact
    from .commands import Unit as Unit
    from .compaction.branches import Branches as Branches
    from .compaction.errors import AssumptionUnknown as AssumptionUnknown
    from .compaction.errors import CompactionUnknown as CompactionUnknown
    from .compaction.errors import PlanUsed as PlanUsed
    from .compaction.errors import StalePlan as StalePlan
    from .compaction.errors import SummaryRejected as SummaryRejected
    from .compaction.options import Summarizer as Summarizer
    from .compaction.overlays import Compaction as Compaction
    from .compaction.plan import Plan as Plan
    from .compaction.retracting import Contamination as Contamination
    from .compaction.verdict import Reason as Reason
    from .compaction.verdict import Verdict as Verdict
    from .dialects import Dialect as Dialect
    from .errors import ActorError as ActorError
    from .errors import AsyncioOnly as AsyncioOnly
    from .errors import BacklogFull as BacklogFull
    from .errors import BranchAttached as BranchAttached
    from .errors import BranchUnknown as BranchUnknown
    from .errors import CallAlreadyAnswered as CallAlreadyAnswered
    from .errors import CallAmbiguous as CallAmbiguous
    from .errors import CallTimeout as CallTimeout
    from .errors import CallUnknown as CallUnknown
    from .errors import CatalogCorrupt as CatalogCorrupt
    from .errors import CheckpointUnknown as CheckpointUnknown
    from .errors import DeadlockError as DeadlockError
    from .errors import EmptyStack as EmptyStack
    from .errors import Fenced as Fenced
    from .errors import ForkUnfinished as ForkUnfinished
    from .errors import FrameUnknown as FrameUnknown
    from .errors import FrameUnreadable as FrameUnreadable
    from .errors import HeadMoved as HeadMoved
    from .errors import InvalidArgument as InvalidArgument
    from .errors import JournalCorrupt as JournalCorrupt
    from .errors import JournalTruncated as JournalTruncated
    from .errors import KeyConflict as KeyConflict
    from .errors import LevelUnreachable as LevelUnreachable
    from .errors import LogCorrupt as LogCorrupt
    from .errors import MailboxFull as MailboxFull
    from .errors import NameTaken as NameTaken
    from .errors import NameUnknown as NameUnknown
    from .errors import NetworkFileSystem as NetworkFileSystem
    from .errors import NotAStore as NotAStore
    from .errors import NotDurable as NotDurable
    from .errors import RecordsLost as RecordsLost
    from .errors import RecordTooLarge as RecordTooLarge
    from .errors import RecordUnknown as RecordUnknown
    from .errors import RecordUnreadable as RecordUnreadable
    from .errors import Refused as Refused
    from .errors import ReplayError as ReplayError
    from .errors import SessionActorError as SessionActorError
    from .errors import SessionEnded as SessionEnded
    from .errors import StoreClosed as StoreClosed
    from .errors import StoreCorrupt as StoreCorrupt
    from .errors import StoreDegraded as StoreDegraded
    from .errors import StoreError as StoreError
    from .errors import StoreLocked as StoreLocked
    from .errors import StoreUnusable as StoreUnusable
    from .errors import StoreVersionTooNew as StoreVersionTooNew
    from .errors import UnknownMessage as UnknownMessage
    from .errors import UnusableId as UnusableId
    from .errors import ValueNotStorable as ValueNotStorable
    from .errors import WrongLoop as WrongLoop
    from .frames import Artifact as Artifact
    from .frames import Frame as Frame
    from .frames import Instructions as Instructions
    from .frames import PendingCall as PendingCall
    from .frames import Retraction as Retraction
    from .frames import Tool as Tool
    from .frames import Turn as Turn
    from .frames import Usage as Usage
    from .handle.exchange import Exchange as Exchange
    from .handle.feed import ChangeFeed as ChangeFeed
    from .handle.handle import Session as Session
    from .handle.handle import SessionRef as SessionRef
    from .handover.errors import HandedOver as HandedOver
    from .handover.errors import HandoverFailed as HandoverFailed
    from .handover.errors import HandoverUnusable as HandoverUnusable
    from .handover.service import Handover as Handover
    from .handover.swapped import SwappedSession as SwappedSession
    from .hooks.errors import HookUnknown as HookUnknown
    from .hooks.errors import InsideHook as InsideHook
    from .hooks.hook import Hook as Hook
    from .hooks.hook import HookContext as HookContext
    from .hooks.report import DeadLetter as DeadLetter
    from .hooks.report import HooksHealth as HooksHealth
    from .hooks.report import PendingHook as PendingHook
    from .hooks.view import SessionView as SessionView
    from .models.profile import ModelProfile as ModelProfile
    from .models.profiles import profile_of as profile_of
    from .models.reading import read_profiles as read_profiles
    from .replay import Moment as Moment
    from .replay import MomentUnknown as MomentUnknown
    from .replay import Replay as Replay
    from .replay import read_store as read_store
    from .replies import turn_of as turn_of
    from .requests.request import Note as Note
    from .requests.request import Request as Request
    from .server.prune import PruneReport as PruneReport
    from .service.health import ServiceHealth as ServiceHealth
    from .service.service import SessionService as SessionService
    from .service_errors import CloseTimeout as CloseTimeout
    from .service_errors import Lagged as Lagged
    from .service_errors import ServiceClosed as ServiceClosed
    from .service_errors import ServiceDown as ServiceDown
    from .service_errors import SessionBusy as SessionBusy
    from .service_errors import SessionCrashed as SessionCrashed
    from .service_errors import SessionDeleted as SessionDeleted
    from .service_errors import SessionExists as SessionExists
    from .service_errors import SessionFenced as SessionFenced
    from .service_errors import SessionNotFound as SessionNotFound
    from .service_errors import SessionNotQuarantined as SessionNotQuarantined
    from .service_errors import SessionQuarantined as SessionQuarantined
    from .stack import Stack as Stack
    from .state.spending import UsageTotals as UsageTotals
    from .tokens.estimate import estimate_tokens as estimate_tokens
    from .tokens.exact import CounterUnavailable as CounterUnavailable
    from .tokens.exact import exact_counter as exact_counter
    from .transfer.errors import SessionChanged as SessionChanged
    from .transfer.errors import SessionDiverged as SessionDiverged
    from .transfer.errors import TranscriptUnreadable as TranscriptUnreadable
    from .transfer.errors import TransferError as TransferError
    from .transfer.exporting import ExportReport as ExportReport
    from .transfer.exporting import export_session as export_session
    from .transfer.importing import ImportReport as ImportReport
    from .transfer.importing import import_transcript as import_transcript
    from .transfer.notes import NotWhole as NotWhole
    from .transfer.source import SessionReader as SessionReader
    from .validation.validate import validate_request as validate_request
    from .window.errors import ContextOverflow as ContextOverflow
    from .window.errors import NothingToSend as NothingToSend
    from .window.errors import RequestForgotten as RequestForgotten

    __version__: str

_HOMES: Final[dict[str, tuple[str, ...]]] = {
    ".service.health": ("ServiceHealth",),
    ".hooks.errors": ("HookUnknown", "InsideHook"),
    ".hooks.hook": ("Hook", "HookContext"),
    ".hooks.report": ("DeadLetter", "HooksHealth", "PendingHook"),
    ".hooks.view": ("SessionView",),
    ".service.service": ("SessionService",),
    ".server.prune": ("PruneReport",),
    ".handle.handle": ("Session", "SessionRef"),
    ".handover.errors": ("HandedOver", "HandoverFailed", "HandoverUnusable"),
    ".handover.service": ("Handover",),
    ".handover.swapped": ("SwappedSession",),
    ".handle.exchange": ("Exchange",),
    ".replay": ("Moment", "MomentUnknown", "Replay", "read_store"),
    ".replies": ("turn_of",),
    ".state.spending": ("UsageTotals",),
    ".stack": ("Stack",),
    ".change": ("Change",),
    ".handle.feed": ("ChangeFeed",),
    ".frames": (
        "Artifact", "Frame", "Instructions", "PendingCall", "Retraction", "Tool", "Turn", "Usage",
    ),
    ".blocks": (
        "Block", "CallRef", "Document", "Image", "Native", "Reference", "Text", "Thinking", "ToolCall", "ToolResult",
    ),
    ".commands": (
        "AddAssistant", "AddReference", "AddResponse", "AddToolResult", "AddUser", "BuildRequest", "Checkpoint",
        "Command", "CommitCompaction", "Configure", "Content", "DeleteBranch", "DeleteCheckpoint", "End", "Fork",
        "Goto", "HoldCall", "How", "NoteArtifact", "Pin", "Pop", "Push", "RenameBranch", "RenameCheckpoint",
        "RequestFailed", "Retract", "Target", "Uncompact", "Unit",
    ),
    ".errors": (
        "ActorError", "AsyncioOnly", "BacklogFull", "BranchAttached", "BranchUnknown", "CallAlreadyAnswered",
        "CallAmbiguous", "CallTimeout", "CallUnknown", "CatalogCorrupt", "CheckpointUnknown", "DeadlockError",
        "EmptyStack", "Fenced", "ForkUnfinished", "FrameUnknown", "FrameUnreadable", "HeadMoved", "InvalidArgument",
        "JournalCorrupt", "JournalTruncated", "KeyConflict", "LevelUnreachable", "LogCorrupt", "MailboxFull",
        "NameTaken", "NameUnknown", "NetworkFileSystem", "NotAStore", "NotDurable", "RecordTooLarge", "RecordUnknown",
        "RecordUnreadable", "RecordsLost", "Refused", "ReplayError", "SessionActorError", "SessionEnded",
        "StoreClosed", "StoreCorrupt", "StoreDegraded", "StoreError", "StoreLocked", "StoreUnusable",
        "StoreVersionTooNew", "UnknownMessage", "UnusableId", "ValueNotStorable", "WrongLoop",
    ),
    ".service_errors": (
        "CloseTimeout", "Lagged", "ServiceClosed", "ServiceDown", "SessionBusy", "SessionCrashed", "SessionDeleted",
        "SessionExists", "SessionFenced", "SessionNotFound", "SessionNotQuarantined", "SessionQuarantined",
    ),
    ".compaction.plan": ("Plan",),
    ".compaction.verdict": ("Reason", "Verdict"),
    ".compaction.errors": ("AssumptionUnknown", "CompactionUnknown", "PlanUsed", "StalePlan", "SummaryRejected"),
    ".compaction.overlays": ("Compaction",),
    ".compaction.retracting": ("Contamination",),
    ".compaction.branches": ("Branches",),
    ".compaction.options": ("Summarizer",),
    ".budget.report": ("Budget",),
    ".budget.reserves": ("output_reserve", "safety_reserve"),
    ".dialects": ("Dialect",),
    ".models.profile": ("ModelProfile",),
    ".models.profiles": ("profile_of",),
    ".models.reading": ("read_profiles",),
    ".tokens.estimate": ("estimate_tokens",),
    ".tokens.exact": ("CounterUnavailable", "exact_counter"),
    ".requests.request": ("Note", "Request"),
    ".transfer.errors": ("SessionChanged", "SessionDiverged", "TranscriptUnreadable", "TransferError"),
    ".transfer.exporting": ("ExportReport", "export_session"),
    ".transfer.importing": ("ImportReport", "import_transcript"),
    ".transfer.notes": ("NotWhole",),
    ".transfer.source": ("SessionReader",),
    ".validation.validate": ("validate_request",),
    ".window.errors": ("ContextOverflow", "NothingToSend", "RequestForgotten"),
    ".persistence": ("FileStore", "Level", "MemoryStore", "RecoveryReport", "SessionInfo", "StoreHealth"),
}  # fmt: skip

_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - one table, above, is public  # pyright: ignore[reportUnsupportedDunderAll]


if not TYPE_CHECKING:  # a type checker that saw these would take any name for one of this module

    def __getattr__(name: str) -> Any:
        value = _version() if name == "__version__" else _at_home(name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*__all__, "__version__"]

    def _version() -> str:
        from importlib.metadata import version

        return version("session-actor")

    def _at_home(name: str) -> Any:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(home, __name__), name)

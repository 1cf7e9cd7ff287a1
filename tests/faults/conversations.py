"""Conversations as they must be, beside the real ones: for processes that are killed while they hold them.

What is done in a session follows from a seed alone: its operation n is the same whoever does it, so that "session, n"
is enough to tell which one was acknowledged.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from ..session_actor.session_model import Model
else:  # run as part of a script
    sys.path.insert(0, str(Path(__file__).parents[1] / "session_actor"))
    from session_model import Model

from session_actor import Session, SessionDeleted, SessionNotFound, SessionService

KINDS = ("pop",) * 9 + ("checkpoint", "goto", "main", "fork") * 5 + ("delete", "delete", "prune", "prune")
OLD_ENOUGH = 60
"""Operations before a session may be deleted, so that some grow long."""
Operation = tuple[Any, ...]


class Conversation:
    """One session as it must be: what is acknowledged, and which operation comes next."""

    def __init__(self, seed: str, old_enough: int = OLD_ENOUGH) -> None:
        self.seed = seed
        self.old_enough = old_enough
        self.done = 0
        self.model: Model | None = None
        """None: there is no such session."""

    def next(self) -> Operation:
        """The operation that comes next, as a name and arguments."""
        model, chance = self.model, Random(f"{self.seed}/{self.done}")
        if model is None:
            return ("create",)
        if not model.head or chance.random() < 0.6:
            return ("push", f"{self.done}", "x" * chance.choice((0, 10, 200, 900)))
        return self._move(model, model.head, chance)

    def _move(self, model: Model, head: int, chance: Random) -> Operation:
        operation: Operation = ("goto", "main")
        match chance.choice(KINDS):
            case "pop":
                operation = ("pop", chance.randint(1, 3))
            case "checkpoint":
                operation = ("checkpoint", f"point {self.done}")
            case "goto" if model.checkpoints:
                operation = ("goto", chance.choice(sorted(model.checkpoints)))
            case "fork":
                at = chance.choice(sorted(model.ancestry(head)))
                operation = ("fork", at, f"fork {self.done}", f"{self.done}")
            case "prune":
                operation = ("prune",)
            case "delete" if self.done > self.old_enough:
                operation = ("delete",)
        return operation

    def apply(self) -> None:
        """The next operation happened."""
        operation, model = self.next(), self.model
        self.done += 1
        if operation == ("create",):
            self.model = Model()
        elif operation == ("delete",):
            self.model = None
        elif model is not None:
            _apply(model, operation)

    def shown(self) -> tuple[Any, ...] | None:
        """What a session shows that is as this one."""
        model = self.model
        return None if model is None else (model.head, model.path(model.head), model.branches, model.checkpoints)

    def following(self) -> Conversation:
        """The same with its next operation done."""
        other = self.copy()
        other.apply()
        return other

    def copy(self) -> Conversation:
        """The same once more, to go on by itself."""
        other = Conversation(self.seed, self.old_enough)
        other.done = self.done
        if self.model is not None:
            other.model = Model()
            for name, value in vars(self.model).items():
                setattr(other.model, name, value.copy() if isinstance(value, dict) else value)
        return other


def _apply(model: Model, operation: Operation) -> None:
    match operation:
        case ("push", text, _):
            grown = model.grow(model.head, text)
            model.attached = model.attached or f"b{grown}"
            model.move(grown)
        case ("pop", count):
            model.move(model.below(model.head, count))
        case ("checkpoint", name) if model.head:
            model.checkpoints[name] = model.head
        case ("goto", "main"):
            model.goto(model.branches["main"], "main")
        case ("goto", name):
            model.goto(model.checkpoints[name], None)
        case ("fork", at, name, text):
            model.branches[name] = model.grow(at, text)
            model.goto(model.branches[name], name)


async def perform(service: SessionService, name: str, operation: Operation) -> None:
    """Do an operation in a real session, at the service's level."""
    if operation == ("create",):
        await service.session(name, create=True)
    elif operation == ("delete",):
        await service.delete(name)
    else:
        await change(await service.session(name), *operation)


async def change(session: Session, kind: str, *arguments: Any, **options: Any) -> None:
    """Do an operation of a session that is there; `options` as for any change."""
    match kind, arguments:
        case "push", (text, answer):
            await session.push(text, answer, **options)
        case "fork", (at, name, text):
            await session.fork(at, branch=name, user_input=text, **options)
        case _:
            await getattr(session, kind)(*arguments, **options)


async def shown(service: SessionService, name: str) -> tuple[Any, ...] | None:
    """What a real session shows; None when there is none."""
    try:
        session = await service.session(name)
    except (SessionNotFound, SessionDeleted):
        return None
    stack = await (await session.stack()).load()
    head = stack[-1].id if stack else None
    return head, tuple(frame.user_input for frame in stack), await session.branches(), await session.checkpoints()


async def has_gone_on(service: SessionService, name: str, conversation: Conversation) -> bool:
    """Whether the operation that was under way has happened. Raises AssertionError when the session is as neither."""
    found = await shown(service, name)
    if found == conversation.shown():
        return False
    following = conversation.following()
    if found == following.shown():
        return True
    raise AssertionError(
        f"{name} is neither as after operation {conversation.done} nor as after {following.done}, which is "
        f"{conversation.next()}\n found: {found}\nbefore: {conversation.shown()}\n after: {following.shown()}"
    )

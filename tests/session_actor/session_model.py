"""A plain model of one session: for each frame the texts from the root to it, and where the names are."""

from __future__ import annotations


class Model:
    """Nothing of the library's own structure: a path is a tuple of texts, copied for every frame."""

    def __init__(self) -> None:
        self.paths: dict[int, tuple[str, ...]] = {}
        self.parents: dict[int, int | None] = {}
        self.branches: dict[str, int | None] = {"main": None}
        self.checkpoints: dict[str, int] = {}
        self.head: int | None = None
        self.attached: str | None = "main"
        self.newest = 0

    def path(self, frame: int | None) -> tuple[str, ...]:
        """The texts that a stack with this head shows."""
        return self.paths[frame] if frame else ()

    def grow(self, parent: int | None, text: str) -> int:
        """One more frame on `parent`; its id."""
        self.newest += 1
        self.paths[self.newest] = (*self.path(parent), text)
        self.parents[self.newest] = parent
        return self.newest

    def move(self, frame: int | None) -> None:
        """The head goes to `frame`, and the attached branch with it."""
        self.head = frame
        if self.attached is not None:
            self.branches[self.attached] = frame

    def move_branch(self, branch: str, frame: int | None) -> None:
        """One branch goes to `frame`, and the head with it when it is on that branch."""
        self.branches[branch] = frame
        if self.attached == branch:
            self.head = frame

    def goto(self, frame: int | None, branch: str | None) -> None:
        """The head is at `frame`, on `branch` or detached."""
        self.head, self.attached = frame, branch

    def below(self, frame: int | None, n: int) -> int | None:
        """The frame `n` below."""
        for _ in range(n):
            frame = self.parents[frame] if frame else None
        return frame

    def rename(self, old: str, new: str) -> None:
        """A branch or a checkpoint gets another name; the head stays on it."""
        names = self.branches if old in self.branches else self.checkpoints
        names[new] = names.pop(old)  # type: ignore[assignment]
        if self.attached == old:
            self.attached = new

    def dropped(self) -> set[int]:
        """Forget the frames that neither the head nor a name holds, and return their ids."""
        held = set[int]()
        for tip in (self.head, *self.branches.values(), *self.checkpoints.values()):
            held |= self.ancestry(tip)
        dropped = set(self.paths) - held
        for frame in dropped:
            del self.paths[frame]
        return dropped

    def copied(self, at: int | None = None) -> Model:
        """What a new session has of this one: all that a name or the head holds, or the path to `at` (0: none)."""
        copy = Model()
        copy.newest = self.newest
        if at is None:
            copy.branches, copy.checkpoints = dict(self.branches), dict(self.checkpoints)
            copy.head, copy.attached = self.head, self.attached
        else:
            copy.head = at or None
            copy.branches = {"main": copy.head}
            held = self.ancestry(at)
            copy.checkpoints = {name: frame for name, frame in self.checkpoints.items() if frame in held}
        for tip in (copy.head, *copy.branches.values(), *copy.checkpoints.values()):
            for frame in self.ancestry(tip):
                copy.paths[frame], copy.parents[frame] = self.paths[frame], self.parents[frame]
        return copy

    def ancestry(self, frame: int | None) -> set[int]:
        """The ids from `frame` down to the root."""
        found = set[int]()
        while frame:
            found.add(frame)
            frame = self.parents[frame]
        return found

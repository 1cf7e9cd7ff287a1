"""A server with a hook that hangs, which stops by Ctrl-C or, as servers do, by SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import sys

from session_actor import Hook, HookContext, SessionService


async def tell(ctx: HookContext) -> None:
    print(ctx.phase, ctx.session_id, flush=True)  # noqa: T201 - the parent reads it


async def hang(ctx: HookContext) -> None:
    await tell(ctx)
    await asyncio.Event().wait()


async def main(root: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    hooks = [Hook("bill", hang, "ended", mandatory=True, timeout_s=3600), Hook("off", tell, "passivated")]
    async with SessionService.open(root, hooks=hooks, close_timeout_s=0.5) as service:
        await service.session("open", create=True)
        await service.session("over", create=True)
        await service.end("over")
        await stop.wait()


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1]))
    except KeyboardInterrupt:
        print("interrupted", flush=True)  # noqa: T201 - the same

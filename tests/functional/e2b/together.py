"""Many things at once, by the asynchronous half of E2B's Python package."""

import asyncio

from e2b import AsyncSandbox, FilesystemEventType


async def main():
    sandbox = await AsyncSandbox.create(timeout=120)
    commands = [sandbox.commands.run(f"sleep 0.2; echo {n}; echo e{n} >&2") for n in range(30)]
    results = await asyncio.gather(*commands)
    assert [it.stdout for it in results] == [f"{n}\n" for n in range(30)]
    assert [it.stderr for it in results] == [f"e{n}\n" for n in range(30)]

    created = set()

    def note(event):
        if event.type == FilesystemEventType.CREATE:
            created.add(event.name)

    await sandbox.files.make_dir("d")
    watch = await sandbox.files.watch_dir("d", on_event=note)
    names = {f"{n}.txt" for n in range(20)}
    await asyncio.gather(*[sandbox.files.write(f"d/{name}", name) for name in names])
    for _ in range(400):
        if names <= created:
            break
        await asyncio.sleep(0.05)
    assert names <= created, created
    await watch.stop()

    heard = []
    handle = await sandbox.commands.run(
        "for n in 1 2 3; do echo $n; sleep 0.1; done", background=True, on_stdout=heard.append
    )
    assert (await handle.wait()).stdout == "1\n2\n3\n"
    assert "".join(heard) == "1\n2\n3\n"
    await sandbox.kill()
    print("all of it works")


asyncio.run(main())

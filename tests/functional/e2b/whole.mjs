// Every call of E2B's JavaScript package that `sandbox serve --e2b` serves, as a program would make it.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

// A module is looked up beside the program, and NODE_PATH counts for `require` only.
const require = createRequire(import.meta.url)
const {
  CommandExitError, FileNotFoundError, FileType, FilesystemEventType, NotFoundError, Sandbox,
  SandboxError, SandboxNotFoundError, TimeoutError,
} = require('e2b')

async function refused(kind, call, words = /(?:)/) {
  try {
    await call()
  } catch (error) {
    assert.ok(error instanceof kind, `${error?.constructor?.name}: ${error}`)
    assert.match(String(error.message), words)
    return error
  }
  assert.fail(`${words}: it was not refused`)
}

async function waitFor(what, condition) {
  const end = Date.now() + 20_000
  while (!(await condition())) {
    assert.ok(Date.now() < end, `${what}: not in time`)
    await new Promise((done) => setTimeout(done, 50))
  }
}

async function sandboxes() {
  const sandbox = await Sandbox.create({
    timeoutMs: 120_000, metadata: { purpose: 'from js & more' }, envs: { FROM_CREATE: 'yes' },
  })
  const other = await Sandbox.create('base', { timeoutMs: 60_000 })
  assert.ok(await sandbox.isRunning())
  const info = await sandbox.getInfo()
  assert.equal(info.sandboxId, sandbox.sandboxId)
  assert.deepEqual(info.metadata, { purpose: 'from js & more' })
  await sandbox.setTimeout(300_000)
  const left = (await sandbox.getInfo()).endAt.getTime() - Date.now()
  assert.ok(left > 250_000, String(left))
  const paginator = Sandbox.list({ limit: 1 })
  const ids = []
  while (paginator.hasNext) ids.push(...(await paginator.nextItems()).map((it) => it.sandboxId))
  assert.ok(ids.includes(sandbox.sandboxId) && ids.includes(other.sandboxId), String(ids))
  const query = { metadata: { purpose: 'from js & more' }, state: ['running'] }
  const found = await Sandbox.list({ query }).nextItems()
  assert.deepEqual(found.map((it) => it.sandboxId), [sandbox.sandboxId])
  const again = await Sandbox.connect(sandbox.sandboxId)
  assert.equal((await again.commands.run('echo $FROM_CREATE')).stdout, 'yes\n')
  await other.kill()
  assert.equal(await Sandbox.kill(other.sandboxId), false)
  assert.equal(await other.isRunning(), false)
  await refused(SandboxNotFoundError, () => Sandbox.connect(other.sandboxId))
  await refused(Error, () => other.commands.run('true'), /not (found|running)/)
  return sandbox
}

async function commands(sandbox) {
  const { commands } = sandbox
  const result = await commands.run('echo out; echo err >&2')
  assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 0])
  const heard = []
  await commands.run('echo one; echo two >&2', {
    onStdout: (it) => heard.push(`out ${it}`), onStderr: (it) => heard.push(`err ${it}`),
  })
  assert.deepEqual(heard.sort(), ['err two\n', 'out one\n'])
  const failed = await refused(CommandExitError, () => commands.run('echo late; exit 3'))
  assert.deepEqual([failed.exitCode, failed.stdout], [3, 'late\n'])
  assert.equal((await commands.run('pwd', { cwd: '/usr' })).stdout, '/usr\n')
  assert.equal((await commands.run('echo $A', { envs: { A: 'b' }, user: 'root' })).stdout, 'b\n')
  await refused(TimeoutError, () => commands.run('sleep 100', { timeoutMs: 1000 }))
  const much = (await commands.run('seq 1 200000')).stdout
  assert.equal(much.length, 1288895)

  const background = await commands.run('read line; echo got $line; cat', { background: true, stdin: true })
  const listed = (await commands.list()).find((it) => it.pid === background.pid)
  assert.equal(listed.cmd, '/bin/bash')
  await commands.sendStdin(background.pid, 'words\n')
  await background.sendStdin('more\n')
  await commands.closeStdin(background.pid)
  assert.equal((await background.wait()).stdout, 'got words\nmore\n')

  let before
  const wrote = new Promise((done) => { before = done })
  const left = await commands.run('echo before; read x; echo after $x', {
    background: true, stdin: true, timeoutMs: 0, onStdout: before,
  })
  await wrote
  await left.disconnect()
  const connected = await commands.connect(left.pid)
  await commands.sendStdin(left.pid, 'here\n')
  assert.equal((await connected.wait()).stdout, 'after here\n')
  await refused(NotFoundError, () => commands.connect(left.pid))
  const sleeper = await commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  assert.equal(await commands.kill(sleeper.pid), true)
  await refused(CommandExitError, () => sleeper.wait())
  assert.equal(await commands.kill(sleeper.pid), false)
}

async function files(sandbox) {
  const { files } = sandbox
  const written = await files.write('notes/a.txt', 'text é\n')
  assert.deepEqual([written.name, written.type], ['a.txt', FileType.FILE])
  assert.equal(await files.read('notes/a.txt'), 'text é\n')
  assert.equal(new TextDecoder().decode(await files.read(written.path, { format: 'bytes' })), 'text é\n')
  const parts = []
  for await (const part of await files.read('notes/a.txt', { format: 'stream' })) parts.push(Buffer.from(part))
  assert.equal(Buffer.concat(parts).toString(), 'text é\n')
  assert.equal(await (await files.read('notes/a.txt', { format: 'blob' })).text(), 'text é\n')
  const big = new Uint8Array(3 << 20).map((_, index) => index % 251)
  await files.write('/home/user/big', big.buffer)
  assert.deepEqual(await files.read('big', { format: 'bytes' }), big)
  await files.write('streamed', new Blob([big]).stream())
  assert.deepEqual(await files.read('streamed', { format: 'bytes' }), big)
  const several = await files.write([{ path: 'many/1 "one".txt', data: '1' }, { path: 'many/2', data: '2' }])
  assert.deepEqual(several.map((it) => it.name), ['1 "one".txt', '2'])
  assert.equal(await files.read('many/1 "one".txt'), '1')
  await files.write('empty', '')
  assert.equal(await files.read('empty'), '')
  assert.deepEqual((await files.list('many')).map((it) => it.name).sort(), ['1 "one".txt', '2'])
  const deep = (await files.list('.', { depth: 2 })).map((it) => it.path)
  assert.ok(deep.some((path) => path.endsWith('/many/2')), String(deep))
  const info = await files.getInfo('notes/a.txt')
  assert.deepEqual([info.type, info.size], [FileType.FILE, 8])
  assert.ok(await files.exists('notes/a.txt'))
  assert.equal(await files.exists('notes/b.txt'), false)
  assert.equal((await files.rename('notes/a.txt', 'new/c.txt')).name, 'c.txt')
  assert.equal(await files.makeDir('made/below'), true)
  assert.equal(await files.makeDir('made/below'), false)
  await files.remove('made')
  assert.equal(await files.exists('made'), false)
  await refused(FileNotFoundError, () => files.read('nothing'))

  await files.makeDir('watched/below')
  const seen = []
  const watch = await files.watchDir('watched', (event) => seen.push(event), { recursive: true })
  await files.write('watched/below/new.txt', '1')
  await files.remove('watched/below/new.txt')
  const has = (type) => seen.some((it) => it.name === 'below/new.txt' && it.type === type)
  await waitFor('changes', () => has(FilesystemEventType.CREATE) && has(FilesystemEventType.REMOVE))
  await watch.stop()

  const url = await sandbox.downloadUrl('new/c.txt', { useSignatureExpiration: 60_000 })
  assert.equal(await (await fetch(url)).text(), 'text é\n')
  const upload = await sandbox.uploadUrl('sent.txt', { useSignatureExpiration: 60_000 })
  const form = new FormData()
  form.append('file', new Blob(['by a link']), 'sent.txt')
  assert.equal((await fetch(upload, { method: 'POST', body: form })).status, 200)
  assert.equal(await files.read('sent.txt'), 'by a link')
}

async function terminals(sandbox) {
  let shown = ''
  const pty = await sandbox.pty.create({
    rows: 24, cols: 80, timeoutMs: 60_000, onData: (bytes) => { shown += new TextDecoder().decode(bytes) },
  })
  await sandbox.pty.resize(pty.pid, { rows: 50, cols: 132 })
  await sandbox.pty.sendInput(pty.pid, new TextEncoder().encode('stty size; exit 4\n'))
  const ended = await refused(CommandExitError, () => pty.wait())
  assert.equal(ended.exitCode, 4)
  assert.match(shown, /50 132/)
  const other = await sandbox.pty.create({ rows: 24, cols: 80, onData: () => {}, timeoutMs: 0 })
  assert.equal(await sandbox.pty.kill(other.pid), true)
}

async function unsupported(sandbox) {
  await refused(SandboxError, () => sandbox.pause(), /not supported here/)
  await refused(SandboxError, () => sandbox.createSnapshot(), /not supported here/)
  await refused(SandboxError, () => Sandbox.create('code-interpreter-v1'), /no template/)
}

const sandbox = await sandboxes()
for (const part of [commands, files, terminals, unsupported]) {
  console.log(part.name)
  await part(sandbox)
}
await sandbox.kill()
console.log('all of it works')

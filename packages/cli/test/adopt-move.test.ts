// `svc adopt --move` deletes only what is here, whatever the models of other tools are called.
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  writeFileSync
} from 'node:fs'
import { dirname, join } from 'node:path'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { foundModels, readCaches } from '../src/adopt/found-models.ts'
import { MovedFiles } from '../src/adopt/moved.ts'
import { TakeOver } from '../src/adopt/take-over.ts'
import { run } from '../src/run.ts'
import { openSession, type Session } from '../src/session.ts'
import { isThere, named } from './adopted-models.ts'
import { Captured, type TestDaemon, testDaemon } from './support.ts'
import { put, putOllama, sha256 } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

const weights = (seed: number): Buffer => makeGguf({ seed })

it('without --replace, an existing model of that name and the originals stay', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  const [mine, theirs] = [weights(5), weights(6)]
  writeFileSync(join(daemon.folder, 'mine-q8_0.gguf'), mine)
  await daemon.svc('import', 'local', 'mine-q8_0.gguf', '--as', 'ollama/tiny')
  putOllama(root, 'tiny', 'latest', theirs)
  const blob = join(root, `blobs/sha256-${sha256(theirs)}`)
  const dry = await daemon.svc('adopt', root, '--dry-run', '--json')
  expect(JSON.parse(dry.stdout).models).toMatchObject([{ as: 'ollama/tiny', taken: ['ollama/tiny:q8_0'] }])
  expect((await daemon.svc('adopt', root, '--move', '--yes')).code).not.toBe(0)
  expect(isThere(blob, theirs)).toBe(true)
  expect([...(await named(daemon)).keys()]).toContain(`sha256:${sha256(mine)}`)
  expect((await daemon.svc('adopt', root, '--move', '--replace')).code).toBe(0)
  expect(existsSync(blob)).toBe(false)
  expect([...(await named(daemon)).keys()]).not.toContain(`sha256:${sha256(mine)}`)
})

it('a corrupt blob here does not let --move delete the original', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  // large enough that its tree is kept, so that an import of what is here reads nothing
  const bytes = makeGguf({ tensors: [{ name: 'output.weight', shape: [1024, 4096], type: 'Q8_0' }], seed: 7 })
  putOllama(root, 'tiny', 'latest', bytes)
  expect((await daemon.svc('adopt', root)).code).toBe(0)
  const digest = sha256(bytes)
  const blob = join(daemon.root, 'blobs/sha256', digest.slice(0, 2), digest.slice(2))
  const rotten = Buffer.from(bytes)
  rotten[rotten.length >> 1]! ^= 1
  chmodSync(blob, 0o600)
  writeFileSync(blob, rotten)
  await daemon.svc('adopt', root, '--move')
  const original = join(root, `blobs/sha256-${digest}`)
  const here = existsSync(blob) && sha256(readFileSync(blob)) === digest
  expect(here || isThere(original, bytes)).toBe(true)
})

it('a file with two names is removed under both, after the imported bytes were read back', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'models')
  const bytes = weights(41)
  const [first, second] = [join(root, 'a/x/x-q8_0.gguf'), join(root, 'b/x/x-q8_0.gguf')]
  put(first, bytes)
  mkdirSync(dirname(second), { recursive: true })
  linkSync(first, second)
  const kept = join(daemon.folder, 'kept')
  linkSync(first, kept)
  expect((await daemon.svc('adopt', root, '--move', '--yes')).code).toBe(0)
  expect([existsSync(first), existsSync(second), isThere(kept, bytes)]).toEqual([false, false, true])
  expect((await named(daemon)).has(`sha256:${sha256(bytes)}`)).toBe(true)
})

it.each([
  ['other bytes of the same size', (path: string, bytes: Buffer) => writeFileSync(path, Buffer.alloc(bytes.length, 1))],
  [
    'another file in its place',
    (path: string) => {
      writeFileSync(`${path}.new`, weights(52))
      renameSync(`${path}.new`, path)
    }
  ]
])('an original that changes after its import is kept: %s', async (_, change) => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'models')
  const bytes = weights(51)
  const [path, other] = [join(root, 'a/x/x-q8_0.gguf'), join(root, 'b/y/y-q8_0.gguf')]
  put(path, bytes)
  put(other, weights(53))
  const stderr = new Captured('utf8')
  const stdout = new Captured('utf8')
  // the reference is printed when the import is over, and before anything is removed
  stdout.when(':q8_0', () => change(path, bytes))
  const terminal = {
    stdout: stdout.output,
    stderr: stderr.output,
    cwd: daemon.folder,
    env: { SVC_SOCKET: daemon.socketPath }
  }
  expect(await run(['adopt', root, '--move', '--yes'], '1.2.3', terminal, new AbortController().signal)).toBe(0)
  expect([existsSync(path), existsSync(other)]).toEqual([true, false])
  expect(isThere(path, bytes)).toBe(false)
  expect((await named(daemon)).has(`sha256:${sha256(bytes)}`)).toBe(true)
})

it('the original stays if its reference names another artifact at the end', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  const [theirs, mine] = [weights(61), weights(62)]
  putOllama(root, 'tiny', 'latest', theirs)
  writeFileSync(join(daemon.folder, 'mine-q8_0.gguf'), mine)
  const session = quietSession(daemon)
  const found = await foundModels(session, await readCaches(session, [{ path: root }]), {})
  const moved = new MovedFiles(session, found)
  const outcome = await new TakeOver(session, { yes: true }).run(found.models[0]!)
  expect(outcome.members).toMatchObject([{ ref: 'ollama/tiny:q8_0' }])
  const replaced = await daemon.svc('import', 'local', 'mine-q8_0.gguf', '--as', 'ollama/tiny', '--replace')
  expect(replaced.code).toBe(0)
  await moved.tried(outcome)
  expect(moved.removedBytes).toBe(0)
  expect(isThere(join(root, `blobs/sha256-${sha256(theirs)}`), theirs)).toBe(true)
})

it.each(['before its import', 'before its removal'])('a cache whose disk goes away %s loses nothing', async (when) => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'disk/ollama')
  const bytes = weights(65)
  putOllama(root, 'tiny', 'latest', bytes)
  const session = quietSession(daemon)
  const found = await foundModels(session, await readCaches(session, [{ path: root }]), {})
  const moved = new MovedFiles(session, found)
  const takeOver = new TakeOver(session, { yes: true })
  const [disk, away] = [join(daemon.folder, 'disk'), join(daemon.folder, 'away')]
  const unmount = (): void => {
    renameSync(disk, away)
    // what is left is the mount point
    mkdirSync(disk)
  }
  if (when === 'before its import') unmount()
  const outcome = await takeOver.run(found.models[0]!)
  if (when === 'before its removal') unmount()
  expect(outcome.error?.message).toEqual(when === 'before its import' ? expect.stringContaining(root) : undefined)
  await moved.tried(outcome)
  await moved.clearUp()
  expect([moved.removedBytes, existsSync(disk), readdirSync(disk)]).toEqual([0, true, []])
  rmdirSync(disk)
  renameSync(away, disk)
  expect(isThere(join(root, `blobs/sha256-${sha256(bytes)}`), bytes)).toBe(true)
  expect((await daemon.svc('adopt', root, '--move', '--yes')).code).toBe(0)
  expect((await named(daemon)).has(`sha256:${sha256(bytes)}`)).toBe(true)
})

function quietSession({ folder, socketPath }: TestDaemon): Session {
  const [stdout, stderr] = [new Captured('utf8'), new Captured('utf8')]
  const terminal = { stdout: stdout.output, stderr: stderr.output, cwd: folder, env: { SVC_SOCKET: socketPath } }
  const session = openSession({ quiet: true }, '1.2.3', terminal, new AbortController().signal)
  onTestFinished(() => session.client.close())
  return session
}

it('originals are kept if their import is replaced and collected while they are read', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'models')
  const [theirs, mine] = [weights(63), weights(64)]
  const path = join(root, 'acme/tiny/tiny-q8_0.gguf')
  put(path, theirs)
  writeFileSync(join(daemon.folder, 'mine-q8_0.gguf'), mine)
  const session = quietSession(daemon)
  const found = await foundModels(session, await readCaches(session, [{ path: root }]), {})
  const outcome = await new TakeOver(session, { yes: true }).run(found.models[0]!)
  const { client } = session
  let looks = 0
  const open: typeof client.open = async (...wanted) => {
    const opened = await client.open(...wanted)
    if (looks++ > 0) return opened
    const as = outcome.model.as
    expect((await daemon.svc('import', 'local', 'mine-q8_0.gguf', '--as', as, '--replace')).code).toBe(0)
    expect((await daemon.svc('gc')).code).toBe(0)
    expect(existsSync(opened.files[0]!.path)).toBe(false)
    return opened
  }
  const watched = new Proxy(client, { get: (of, key) => (key === 'open' ? open : Reflect.get(of, key)) })
  await new MovedFiles({ ...session, client: watched }, found).tried(outcome)
  expect(looks).toBeGreaterThan(0)
  expect(isThere(path, theirs)).toBe(true)
})

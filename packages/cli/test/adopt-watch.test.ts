// `svc adopt --watch`: what other tools download is offered once it is whole, and with a view of the store there is one copy of it.
import { existsSync, lstatSync, readFileSync, realpathSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { systemClock } from '@svc/internal-clock'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, onTestFinished, vi } from 'vitest'
import { run } from '../src/run.ts'
import { Captured, ok, type TestDaemon, testDaemon } from './support.ts'
import { COMMIT, put, putHub, putOllama, sha256 } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

/** Looks again and again without a pause, until the test ends. */
function watching(daemon: TestDaemon, args: readonly string[], stdin?: PassThrough & { isTTY: true }) {
  const [stdout, stderr] = [new Captured('utf8'), new Captured('utf8', stdin && 120)]
  const terminal = {
    stdout: stdout.output,
    stderr: stderr.output,
    cwd: daemon.folder,
    env: { SVC_SOCKET: daemon.socketPath },
    clock: { ...systemClock, sleep: () => new Promise<void>((done) => setImmediate(done)) },
    ...(stdin && { stdin })
  }
  const over = new AbortController()
  const ended = run(['adopt', ...args, '--watch'], '1.2.3', terminal, over.signal)
  const stop = async (): Promise<number> => {
    over.abort()
    return ended
  }
  onTestFinished(async () => void (await stop()))
  return { stdout, stderr, stop }
}
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '')

it('a download is imported once it is whole, and what is here is not offered again', async () => {
  const daemon = await testDaemon()
  const folder = join(daemon.folder, 'lmstudio')
  const whole = makeGguf({ seed: 2 })
  put(join(folder, 'acme/first/first-q8_0.gguf'), makeGguf({ seed: 1 }))
  await ok(daemon, 'adopt', folder, '--yes')
  const { stdout, stderr, stop } = watching(daemon, [folder, '--yes'])
  put(join(folder, 'acme/new/new-q8_0.gguf'), whole.subarray(0, whole.length / 2))
  await expect.poll(() => stderr.text).toContain('no model: new-q8_0.gguf')
  writeFileSync(join(folder, 'acme/new/new-q8_0.gguf'), whole)
  await expect.poll(() => lines(stdout.text).filter((line) => line.startsWith('acme/'))).toContain('acme/new:q8_0')
  expect(stdout.text).not.toContain('acme/first:q8_0\n')
  expect(await stop()).toBe(0)
  await ok(daemon, 'verify', 'acme/new:q8_0')
})

it('where a view of the store is in the hub’s cache, --move leaves one copy, which the view shows', async () => {
  const daemon = await testDaemon()
  const cache = join(daemon.folder, 'hub')
  await ok(daemon, 'view', 'add', 'hf', cache)
  const bytes = makeGguf({ seed: 3 })
  const { stdout } = watching(daemon, [cache, '--yes', '--move'])
  putHub(cache, 'Acme/New', { 'New-Q8_0.gguf': bytes })
  await expect.poll(() => stdout.text).toContain('acme/new:q8_0')
  const shown = join(cache, 'models--Acme--New/snapshots', COMMIT, 'New-Q8_0.gguf')
  await expect.poll(() => existsSync(shown) && realpathSync(shown)).toContain(realpathSync(daemon.root))
  expect(lstatSync(shown).isSymbolicLink()).toBe(true)
  expect(readFileSync(shown).equals(bytes)).toBe(true)
})

it('at a terminal each find is a question, and a no is kept', async () => {
  const daemon = await testDaemon()
  const folder = join(daemon.folder, 'models')
  put(join(folder, 'acme/one/one-q8_0.gguf'), makeGguf({ seed: 4 }))
  const stdin = Object.assign(new PassThrough(), { isTTY: true as const })
  const { stdout, stderr } = watching(daemon, [folder], stdin)
  await expect.poll(() => stderr.text).toContain('Import it? (y/N)')
  stdin.write('n\n')
  put(join(folder, 'acme/two/two-q8_0.gguf'), makeGguf({ seed: 5 }))
  await expect.poll(() => stderr.text.split('Import it?').length).toBe(3)
  stdin.write('y\n')
  await expect.poll(() => stderr.text.includes('share') || stdout.text.includes('acme/two:q8_0')).toBe(true)
  stdin.write('n\n')
  await expect.poll(() => stdout.text).toContain('acme/two:q8_0')
  expect(stderr.text.split('Import it?').length).toBe(3)
  expect(await ok(daemon, 'ls')).not.toContain('acme/one')
})

it('a file that a program has reserved, or says that it fills, is not taken', async () => {
  const daemon = await testDaemon()
  const folder = join(daemon.folder, 'models')
  const [holes, beside] = [join(folder, 'acme/holes/holes-q8_0.gguf'), join(folder, 'acme/beside/beside-q8_0.gguf')]
  const whole = makeGguf({ seed: 6 })
  put(holes, whole.subarray(0, 4096))
  truncateSync(holes, whole.length)
  put(beside, whole)
  writeFileSync(`${beside}.aria2`, '')
  put(join(folder, 'acme/last/last-q8_0.gguf'), makeGguf({ seed: 7 }))
  const { stdout, stderr } = watching(daemon, [folder, '--yes', '--move'])
  await expect.poll(() => stdout.text).toContain('acme/last:q8_0')
  expect([existsSync(holes), existsSync(beside), stderr.text.includes('not imported')]).toEqual([true, true, false])
  expect(stdout.text).not.toMatch(/holes:|beside:/)
  rmSync(`${beside}.aria2`)
  writeFileSync(holes, makeGguf({ seed: 8 }))
  await expect
    .poll(() => stdout.text)
    .toMatch(/acme\/beside:q8_0[\s\S]*acme\/holes:q8_0|acme\/holes:q8_0[\s\S]*acme\/beside:q8_0/)
})

it('--move leaves what a model that is here already still needs in its tool', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'ollama')
  const weights = makeGguf({ seed: 9 })
  putOllama(root, 'first', 'latest', weights)
  await ok(daemon, 'adopt', root, '--yes')
  // seen by the same look
  putOllama(root, 'second', 'latest', weights)
  const { stdout, stderr } = watching(daemon, [root, '--yes', '--move'])
  await expect.poll(() => stdout.text).toContain('ollama/second:q8_0')
  await expect.poll(() => stderr.text).toContain('from the other tools')
  expect(existsSync(join(root, `blobs/sha256-${sha256(weights)}`))).toBe(true)
})

// `svc ui` itself.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { until } from '@svc/testkit/until'
import { expect, it, onTestFinished } from 'vitest'
import { run } from '../../src/run.ts'
import { Captured } from '../support.ts'
import { ask, json } from './support.ts'

interface Running {
  readonly stdout: Captured
  readonly stderr: Captured
  /** What a person types; a terminal if `isTTY` is asked for. */
  readonly stdin: PassThrough
  /** The first one that was printed. */
  readonly link: URL
  /** Ctrl-C. @returns the exit code */
  stop(): Promise<number>
}

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-ui-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Runs the command without a daemon, which the page reports by itself. */
async function ui(
  words: readonly string[],
  { env = {}, isTTY = false }: { readonly env?: Record<string, string>; readonly isTTY?: boolean } = {}
): Promise<Running> {
  const [stdout, stderr] = [new Captured('utf8'), new Captured('utf8')]
  const stdin = Object.assign(new PassThrough(), { isTTY })
  const interrupt = new AbortController()
  const shown = { stdout: stdout.output, stderr: stderr.output }
  const terminal = { stdin, ...shown, cwd: '/', env: { SVC_SOCKET: join(scratch(), 'none.sock'), ...env } }
  const ended = run(['ui', ...words], '1.2.3', terminal, interrupt.signal)
  const stop = (): Promise<number> => {
    interrupt.abort(new Error('interrupted'))
    return ended
  }
  onTestFinished(async () => void (await stop()))
  const isReady = (): boolean => stdout.text !== '' && (stderr.text.includes('Ctrl-C') || words.includes('--json'))
  await Promise.race([until(isReady), ended.then(() => expect(stdout.text, stderr.text).not.toBe(''))])
  const first = stdout.text.split('\n')[0]!
  return { stdout, stderr, stdin, link: new URL(words.includes('--json') ? JSON.parse(first).link : first), stop }
}

async function redeem(link: URL): Promise<number> {
  const { headers, body } = json({ token: link.hash.slice(1) })
  const sent = { method: 'POST', headers: { ...headers, origin: link.origin }, body: body! }
  return (await ask(link.origin, '/session', sent)).status
}

/** A desktop whose only program records what it should open. */
function desktop(): { readonly env: Record<string, string>; readonly said: string } {
  const folder = scratch()
  const said = join(folder, 'said')
  mkdirSync(join(folder, 'run'), { mode: 0o700 })
  const program = join(folder, 'xdg-open')
  writeFileSync(program, `#!/bin/sh\nprintf '%s\\n' "$@" > ${said}.part && /bin/mv ${said}.part ${said}\n`)
  chmodSync(program, 0o755)
  return { env: { DISPLAY: ':7', PATH: folder, XDG_RUNTIME_DIR: join(folder, 'run') }, said }
}

it('prints the link first, serves the built page without a daemon, and ends with Ctrl-C', async () => {
  const { link, stdout, stop } = await ui(['--no-open'])
  expect(stdout.text).toBe(`${link.href}\n`)
  const { headers, body } = json({ token: link.hash.slice(1) })
  const entered = await ask(link.origin, '/session', {
    method: 'POST',
    headers: { ...headers, origin: link.origin },
    body: body!
  })
  const cookie = entered.headers['set-cookie']![0]!.split(';')[0]!
  const { path } = JSON.parse(entered.body)
  const page = await ask(link.origin, path, { headers: { cookie } })
  expect(page).toMatchObject({ status: 200, body: expect.stringContaining('app.js') })
  const away = await ask(link.origin, `${path}v1/models`, { headers: { cookie } })
  expect(JSON.parse(away.body).error.code).toBe('E_UNREACHABLE')
  expect(await stop()).toBe(0)
  await expect(ask(link.origin, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})

it('prints a document for programs', async () => {
  const { link, stdout, stderr } = await ui(['--no-open', '--json'])
  expect(JSON.parse(stdout.text)).toEqual({ link: link.href })
  expect(stderr.text).toBe('')
})

it('makes a new link at Enter, which replaces the old one', async () => {
  const { link, stdout, stdin } = await ui(['--no-open'], { isTTY: true })
  stdin.write('\n')
  await until(() => stdout.text.split('\n').length === 3)
  const next = new URL(stdout.text.split('\n')[1]!)
  expect(next.origin).toBe(link.origin)
  expect([await redeem(link), await redeem(next)]).toEqual([403, 200])
})

it('listens on the requested port, or says why it cannot', async () => {
  const other = createServer().listen(0)
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const taken = `${(other.address() as AddressInfo).port}`
  const codes = []
  for (const port of [taken, '70000', '-1', 'x', '']) {
    const stderr = new Captured('utf8')
    const terminal = { stdout: stderr.output, stderr: stderr.output, cwd: '/', env: { SVC_SOCKET: '/nowhere/s.sock' } }
    codes.push(await run(['ui', '--no-open', `--port=${port}`], '1.2.3', terminal, new AbortController().signal))
    if (port === taken) expect(stderr.text).toContain(port)
  }
  expect(codes).toEqual([2, 2, 2, 2, 2])
  other.close()
  await once(other, 'close')
  expect((await ui(['--no-open', `--port=${taken}`])).link.port).toBe(taken)
})

it('opens the browser through a private file, so that no process list shows the token', async () => {
  const { env, said } = desktop()
  const { link, stop } = await ui([], { env })
  await until(() => existsSync(said))
  const opened = readFileSync(said, 'utf8').trimEnd()
  expect(opened).not.toContain(link.hash.slice(1))
  expect(opened.startsWith(`${env.XDG_RUNTIME_DIR}/`)).toBe(true)
  expect(readFileSync(opened, 'utf8')).toContain(link.href)
  expect([statSync(opened).mode & 0o777, statSync(dirname(opened)).mode & 0o777]).toEqual([0o600, 0o700])
  await stop()
  expect(existsSync(dirname(opened))).toBe(false)
})

it('opens nothing with --no-open, without a desktop, or over ssh, where it explains port forwarding', async () => {
  const { env, said } = desktop()
  const { DISPLAY: _, ...plain } = env
  const ssh = { ...env, SSH_CONNECTION: '192.0.2.1 40000 192.0.2.2 22' }
  for (const [words, given] of [
    [['--no-open'], env],
    [[], plain],
    [[], ssh]
  ] as const) {
    const { stderr, link, stop } = await ui(words, { env: given })
    if (given === ssh)
      expect(stderr.text).toMatch(
        new RegExp(` ssh -L ${link.port}:127\\.0\\.0\\.1:${link.port} \\S+@192\\.0\\.2\\.2\n`)
      )
    else expect(stderr.text).not.toContain('ssh')
    await stop()
  }
  expect(existsSync(said)).toBe(false)
})

it('keeps its address with --stay, lets in who was let in before, and tells svc ui of itself', async () => {
  const home = scratch()
  const env = { HOME: home }
  const first = await ui(['--no-open', '--stay'], { env })
  const { headers, body } = json({ token: first.link.hash.slice(1) })
  const { origin } = first.link
  const sent = { method: 'POST', headers: { ...headers, origin }, body: body! }
  const entered = await ask(origin, '/session', sent)
  const cookie = entered.headers['set-cookie']![0]!
  expect(cookie).toMatch(/; Max-Age=\d{7,}$/)
  const { path } = JSON.parse(entered.body)
  expect(await first.stop()).toBe(0)

  const second = await ui(['--no-open', '--stay'], { env })
  expect(second.link.origin).toBe(origin)
  const page = (given: Record<string, string>) => ask(origin, path, { headers: given })
  expect((await page({ cookie: cookie.split(';')[0]! })).status).toBe(200)
  expect((await page({})).status).toBe(403)
  // another one lets one more browser in, once
  const more = await ui(['--no-open'], { env })
  expect(more.link.origin).toBe(origin)
  expect([
    await redeem(new URL(`${origin}/#${'A'.repeat(43)}`)),
    await redeem(more.link),
    await redeem(more.link)
  ]).toEqual([403, 200, 403])
  const kept = join(home, '.local/state/svc/ui/page.json')
  expect([statSync(kept).mode & 0o777, statSync(dirname(kept)).mode & 0o777]).toEqual([0o600, 0o700])
  expect(readFileSync(kept, 'utf8')).not.toContain(cookie.slice(7, 40))
  await second.stop()
  // nobody is there: a page of its own, and no token for whoever takes the port
  expect((await ui(['--no-open'], { env })).link.origin).not.toBe(origin)
  // a link of before, which somebody else may have been told, lets nobody in
  const token = 'B'.repeat(43)
  writeFileSync(join(dirname(kept), 'token'), createHash('sha256').update(token).digest('hex'))
  const third = await ui(['--no-open', '--stay'], { env })
  expect(third.link.origin).toBe(origin)
  expect(await redeem(new URL(`${origin}/#${token}`))).toBe(403)
})

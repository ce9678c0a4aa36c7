// Commands that are typed while the daemon starts, or before, through the programs. Needs `dist`, so `pnpm build` comes first.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { makeModelFolder } from '../packages/testkit/src/models.ts'

const bin = fileURLToPath(new URL('../bin', import.meta.url))

/** A daemon that was called and is held before it has done anything, and the folder of its socket. */
function heldDaemon(): { readonly folder: string; readonly daemon: ChildProcess; readonly env: NodeJS.ProcessEnv } {
  const folder = mkdtempSync(join(tmpdir(), 'svc-called-'))
  const env = { PATH: process.env.PATH, HOME: folder, SVC_SOCKET: join(folder, 's.sock') }
  writeFileSync(join(folder, 'c.toml'), '[swarm]\nenabled = false\n')
  const args = ['--root', join(folder, 'root'), '--config', join(folder, 'c.toml')]
  const daemon = spawn(join(bin, 'svcd'), args, { env, stdio: 'ignore' })
  daemon.kill('SIGSTOP')
  const ended = once(daemon, 'close')
  onTestFinished(async () => {
    daemon.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  expect(readdirSync(folder)).toEqual(['c.toml'])
  return { folder, daemon, env }
}

/** Runs `svc status`, and calls `act` when it says that it waits. */
async function statusOf({ folder, env }: ReturnType<typeof heldDaemon>, act: () => void) {
  const child = spawn(join(bin, 'svc'), ['status'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let [stdout, stderr, waited] = ['', '', false]
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
    if (waited || !stderr.includes('the daemon is starting')) return
    waited = true
    act()
  })
  const [code] = await once(child, 'close')
  return { code, stdout, stderr, waited }
}

test.skipIf(process.platform !== 'linux')(
  'a command waits for a daemon that is just starting (Linux)',
  { timeout: 120_000 },
  async () => {
    const held = heldDaemon()
    const ran = await statusOf(held, () => void held.daemon.kill('SIGCONT'))
    expect(ran).toMatchObject({ code: 0, waited: true })
    expect(ran.stderr).toBe('the daemon is starting …\n')
    expect(ran.stdout).toContain(`pid ${held.daemon.pid}`)
  }
)

test.skipIf(process.platform !== 'linux')(
  'a command stops waiting for a daemon that dies (Linux)',
  { timeout: 120_000 },
  async () => {
    const held = heldDaemon()
    const ran = await statusOf(held, () => void held.daemon.kill('SIGKILL'))
    expect(ran).toMatchObject({ code: 4, stdout: '', waited: true })
    expect(ran.stderr).toContain('no daemon answers')
  }
)

/** Somebody whose first command finds no daemon. */
function newcomer(): { readonly home: string; svc(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ran> } {
  const home = mkdtempSync(join(tmpdir(), 'svc-new-'))
  mkdirSync(join(home, '.config/svc'), { recursive: true })
  mkdirSync(join(home, 'run'), { mode: 0o700 })
  writeFileSync(join(home, '.config/svc/config.toml'), '[swarm]\nenabled = false\n')
  const plain = { PATH: process.env.PATH, HOME: home, XDG_RUNTIME_DIR: join(home, 'run') }
  const svc = async (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> => {
    const child = spawn(join(bin, 'svc'), args, {
      cwd: home,
      env: { ...plain, ...env },
      stdio: ['ignore', 'pipe', 'pipe']
    })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    const [code] = await once(child, 'close')
    return { code, stdout, stderr }
  }
  onTestFinished(async () => {
    await svc(['stop'])
    rmSync(home, { recursive: true, force: true })
  })
  return { home, svc }
}

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

const pidIn = ({ stdout, stderr }: Ran): number => Number(/pid (\d+)/.exec(stdout + stderr)?.[1])

test('the first command starts the daemon and says so once; svc stop ends it', { timeout: 120_000 }, async () => {
  const { home, svc } = newcomer()
  expect(await svc(['stop'])).toMatchObject({ code: 0, stdout: 'no daemon is running\n' })
  expect(await svc(['ls'], { SVC_AUTOSTART: '0' })).toMatchObject({ code: 4, stdout: '' })
  const named = join(home, 'named.sock')
  for (const ran of [await svc(['ls'], { SVC_SOCKET: named }), await svc(['ls', '--socket', named])])
    expect(ran).toMatchObject({ code: 4, stdout: '' })

  const first = await svc(['ls', '--format', 'ids'])
  const log = join(home, '.local/state/svc/svcd.log')
  expect(first).toMatchObject({ code: 0, stdout: '' })
  expect(first.stderr).toMatch(new RegExp(`^started the daemon svcd \\(pid \\d+, log ${log}\\); svc stop ends it\\n`))
  expect(readFileSync(log, 'utf8')).toContain('listening')
  const again = await svc(['ls', '--format', 'ids'])
  expect(again.stderr).not.toContain('started')
  const started = await svc(['start', '--json'])
  expect(JSON.parse(started.stdout)).toEqual({ pid: pidIn(first), started: false })

  const restarted = await svc(['restart'])
  expect(restarted).toMatchObject({ code: 0 })
  expect(pidIn(restarted)).not.toBe(pidIn(first))
  const stopped = await svc(['stop'])
  expect(stopped).toMatchObject({ code: 0, stdout: `stopped the daemon svcd (pid ${pidIn(restarted)})\n` })
  expect(await svc(['stop', 'acme/tiny'])).toMatchObject({ code: 2, stdout: '' })
})

test('commands at once start one daemon', { timeout: 120_000 }, async () => {
  const { svc } = newcomer()
  const ran = await Promise.all([1, 2, 3, 4].map(() => svc(['status'])))
  expect(ran.map(({ code }) => code)).toEqual([0, 0, 0, 0])
  expect(new Set(ran.map(({ stdout }) => /pid (\d+)/.exec(stdout)?.[1])).size).toBe(1)
  expect(ran.filter(({ stderr }) => stderr.includes('started the daemon'))).toHaveLength(1)
})

test('a daemon that cannot start says why, without its log', { timeout: 120_000 }, async () => {
  const { home, svc } = newcomer()
  writeFileSync(join(home, '.config/svc/config.toml'), 'nonsense\n')
  const ran = await svc(['ls'])
  expect(ran).toMatchObject({ code: 4, stdout: '' })
  expect(ran.stderr).toMatch(/^svc: the daemon did not start: .*config\.toml:1/)
  // what an earlier start said is not repeated
  writeFileSync(join(home, '.config/svc/config.toml'), '[swarm]\nenabled = false\n')
  expect(await svc(['ls'])).toMatchObject({ code: 0 })
})

/** The processes of somebody's home. */
const processesOf = (home: string): string[] =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${home}\0`)
    } catch {
      return false
    }
  })

/** Names and bytes of all blobs and records, but for the time of the import, and the checksum of that. */
function storeOf(home: string): Map<string, string> {
  const root = join(home, '.local/share/svc')
  const files = ['blobs', 'state/repos', 'state/artifacts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
  )
  const bytes = (path: string): string =>
    readFileSync(path, 'latin1').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z|crc32:\w+/g, 'then')
  return new Map(files.sort().map((path) => [path.slice(root.length), bytes(path)]))
}

test('with --in-process the command is the daemon, and leaves the store that a daemon leaves', {
  timeout: 120_000
}, async () => {
  const [{ home, svc }, other] = [newcomer(), newcomer()]
  const importing = ['import', 'local', 'tiny', '--as', 'me/tiny', '--quiet']
  for (const folder of [home, other.home]) makeModelFolder(join(folder, 'tiny'), { ggufs: { q8_0: 'Q8_0' } })
  mkdirSync(join(home, 'tmp'))
  const inProcess = (args: readonly string[]) => svc(['--in-process', ...args], { TMPDIR: join(home, 'tmp') })
  const imported = await inProcess(importing)
  expect(imported).toMatchObject({ code: 0, stderr: '' })
  expect(await inProcess(['path', 'me/none:q8_0'])).toMatchObject({ code: 3 })
  const { stdout: path } = await inProcess(['path', 'me/tiny:q8_0'])
  expect(readFileSync(path.trim()).subarray(0, 4).toString()).toBe('GGUF')
  expect((await inProcess(['ls', '--format', 'ids'])).stdout).toBe('me/tiny:bf16\nme/tiny:q8_0\n')
  expect(await inProcess(['pull', 'me/tiny:q8_0'])).toMatchObject({ code: 0 })
  expect(await inProcess(['verify', 'me/tiny:q8_0'])).toMatchObject({ code: 0 })
  // it listens on nothing of the configuration
  const config = join(home, '.config/svc/config.toml')
  writeFileSync(
    config,
    '[swarm]\nenabled = false\n[mirror]\nhub_addr = "127.0.0.1:0"\n[metrics]\naddr = "127.0.0.1:0"\n'
  )
  const look = ['exec', 'me/tiny:q8_0', '--', 'sh', '-c', 'cat "$TMPDIR"/svc-*/runtime.json']
  const facts = JSON.parse((await inProcess(look)).stdout)
  expect(Object.keys(facts).filter((name) => name.endsWith('Address'))).toEqual([])
  // no process, no log, no socket
  expect(processesOf(home)).toEqual([])
  expect(readdirSync(join(home, 'tmp'))).toEqual([])
  expect(readdirSync(join(home, 'run'))).toEqual([])
  expect(readdirSync(join(home, '.local/state/svc'))).toEqual(['roots'])
  expect(await svc(['stop'])).toMatchObject({ stdout: 'no daemon is running\n' })

  expect(await other.svc(importing)).toMatchObject({ code: 0 })
  expect(await other.svc(['stop'])).toMatchObject({ code: 0 })
  expect(storeOf(home).size).toBeGreaterThan(4)
  expect(storeOf(home)).toEqual(storeOf(other.home))
})

test('with --in-process a daemon that runs is used, and what needs one that stays is refused', {
  timeout: 120_000
}, async () => {
  const { home, svc } = newcomer()
  for (const command of ['share me/tiny:q8_0', 'start', 'service install', 'ui', 'view add llama models']) {
    const ran = await svc([...command.split(' '), '--in-process'])
    expect(ran).toMatchObject({ code: 2, stdout: '' })
    expect(ran.stderr).toMatch(/^svc: svc (share|start|service install|ui|view add) needs a daemon that stays/)
  }
  const { stdout: status } = await svc(['start'])
  expect((await svc(['status', '--in-process'])).stdout).toContain(`pid ${/pid (\d+)/.exec(status)![1]}`)
  // a daemon elsewhere has the store
  const elsewhere = join(home, 'run-2')
  mkdirSync(elsewhere, { mode: 0o700 })
  const locked = await svc(['ls', '--in-process'], { XDG_RUNTIME_DIR: elsewhere })
  expect(locked).toMatchObject({ code: 4, stdout: '' })
  expect(locked.stderr).toMatch(/^svc: the daemon did not start: .*is using this store/)
  expect(await svc(['stop'])).toMatchObject({ code: 0 })
})

test('a command with --in-process that is ended by a signal leaves nothing', { timeout: 120_000 }, async () => {
  const { home, svc } = newcomer()
  mkdirSync(join(home, 'tmp'))
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    XDG_RUNTIME_DIR: join(home, 'run'),
    TMPDIR: join(home, 'tmp')
  }
  makeModelFolder(join(home, 'tiny'), { ggufs: { q8_0: 'Q8_0' } })
  expect(await svc(['--in-process', 'import', 'local', 'tiny', '--as', 'me/tiny', '--quiet'])).toMatchObject({
    code: 0
  })
  // the program may have more to do, with the model and its daemon
  const ending = 'trap "test -S $TMPDIR/svc-*/s.sock && exit 7" TERM; echo here; while :; do sleep 0.1; done'
  const exec = spawn(join(bin, 'svc'), ['--in-process', 'exec', 'me/tiny:q8_0', '--', 'sh', '-c', ending], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'inherit']
  })
  await once(exec.stdout, 'data')
  exec.kill('SIGTERM')
  expect(await once(exec, 'close')).toEqual([7, null])
  expect(readdirSync(join(home, 'tmp'))).toEqual([])
  for (const [signal, end] of [
    // that of the program, which gets the signal
    ['SIGTERM', [143, null]],
    ['SIGKILL', [null, 'SIGKILL']]
  ] as const) {
    const args = ['--in-process', 'exec', 'me/tiny:q8_0', '--', 'sh', '-c', 'echo here; exec sleep 100']
    const child = spawn(join(bin, 'svc'), args, {
      cwd: home,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true
    })
    await once(child.stdout, 'data')
    const ended = once(child, 'close')
    process.kill(-child.pid!, signal)
    expect(await ended).toEqual(end)
    expect(processesOf(home)).toEqual([])
    if (signal === 'SIGTERM') expect(readdirSync(join(home, 'tmp'))).toEqual([])
    expect(await svc(['--in-process', 'ls', '--format', 'ids'])).toMatchObject({
      code: 0,
      stdout: 'me/tiny:bf16\nme/tiny:q8_0\n'
    })
  }
})

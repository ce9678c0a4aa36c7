// The programs of a checkout as people start them: signals must reach the daemon. Needs `dist`, so `pnpm build` comes first.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
/** pnpm itself, as `pnpm start` runs it: npx in front of it passes no signal on. */
const pnpm = realpathSync(
  execFileSync('npx', ['--yes', '--package', 'pnpm@10', '-c', 'command -v pnpm'], { encoding: 'utf8' }).trim()
)

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

interface Started {
  readonly process: ChildProcess
  readonly socket: string
  readonly env: NodeJS.ProcessEnv
}

/** Starts a door on a store of its own, and resolves when the daemon answers. */
async function start(command: readonly string[]): Promise<Started> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-doors-'))
  const config = join(folder, 'config.toml')
  writeFileSync(config, '[swarm]\nenabled = false\n')
  const socket = join(folder, 'svc.sock')
  const env = { ...process.env, SVC_SOCKET: socket }
  const [program = '', ...args] = [...command, '--root', join(folder, 'store'), '--config', config]
  const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'], detached: true })
  ends.push(() => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL')
    } catch {
      // nobody is left in the group
    }
    rmSync(folder, { recursive: true, force: true })
  })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log += text
      // the line that systemd's users look for too: it comes when the socket listens.
      if (existsSync(socket)) resolve()
    })
    child.once('exit', (code) => reject(new Error(`ended with ${code}:\n${log}`)))
  })
  return { process: child, socket, env }
}

const ended = (child: ChildProcess): Promise<void> => new Promise((resolve) => child.once('exit', () => resolve()))
const answers = ({ env }: Started): Promise<boolean> =>
  promisify(execFile)(join(root, 'bin/svc'), ['ls'], { env }).then(
    () => true,
    () => false
  )

describe.each([
  ['bin/svcd', [join(root, 'bin/svcd')]],
  ['pnpm start', [process.execPath, pnpm, 'start']]
])('%s', (_name, command) => {
  test.each([
    ['SIGTERM to the door', 'SIGTERM', 1],
    ['Ctrl-C, which goes to everybody in the terminal', 'SIGINT', -1]
  ] as const)('%s ends the daemon', async (_who, signal, group) => {
    const daemon = await start(command)
    expect(await answers(daemon)).toBe(true)
    process.kill(group * (daemon.process.pid as number), signal)
    await ended(daemon.process)
    // a daemon that ends in order takes its socket away; one that was left behind keeps it.
    await expect.poll(() => existsSync(daemon.socket), { timeout: 20_000 }).toBe(false)
  })
})

test('an unbuilt checkout says so and exits with 2', async () => {
  const copy = mkdtempSync(join(tmpdir(), 'svc-doors-'))
  ends.push(() => rmSync(copy, { recursive: true }))
  mkdirSync(join(copy, 'bin'))
  cpSync(join(root, 'bin/svc'), join(copy, 'bin/svc'))
  await expect(promisify(execFile)(join(copy, 'bin/svc'), ['ls'])).rejects.toMatchObject({ code: 2, stdout: '' })
})

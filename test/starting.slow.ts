// A command that is typed while the daemon starts, through the programs. Needs `dist`, so `pnpm build` comes first.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

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

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { run } from '../src/run.ts'
import { Captured, QUIET_SWARM, svc, testDaemon } from './support.ts'

vi.setConfig({ testTimeout: 120_000 })

it.each([
  ['', []],
  [', also with --in-process', ['--in-process']]
])('waits for a starting daemon, and says so%s', async (_, options) => {
  const { folder, root, socketPath, svc, pause } = await testDaemon({ fileConfig: { swarm: QUIET_SWARM } })
  makeModelFolder(join(folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0' } })
  expect(await svc('import', 'local', 'Tiny', '--as', 'acme/tiny')).toMatchObject({ code: 0 })
  await pause()
  writeFileSync(join(folder, 'c.toml'), '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\n')
  const args = ['--root', root, '--socket', socketPath, '--config', join(folder, 'c.toml')]
  const child = spawn(process.execPath, [...SVCD, ...args], {
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: 'ignore'
  })
  const ended = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  // the start takes as long as this test needs.
  const state = () => JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8')).state
  await vi.waitFor(() => expect(state()).toBe('starting'), { timeout: 60_000, interval: 1 })
  child.kill('SIGSTOP')
  expect(state()).toBe('starting')

  const [stdout, stderr] = [new Captured('utf8'), new Captured('utf8')]
  stderr.when('the daemon is starting', () => void child.kill('SIGCONT'))
  const terminal = { stdout: stdout.output, stderr: stderr.output, cwd: folder, env: { SVC_SOCKET: socketPath } }
  expect(await run(['ls', '--format', 'ids', ...options], '1.2.3', terminal, new AbortController().signal)).toBe(0)
  expect(stdout.text).toContain('acme/tiny:q8_0')
  expect(stderr.text).toMatch(/^the daemon is starting .*…\n/)
  expect(state()).toBe('running')
})

it('does not wait for the file of a dead daemon, nor for a process that reuses its pid', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-early-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [socketPath, runtime] = [join(folder, 's.sock'), join(folder, 'runtime.json')]
  const left = async (pid: number, ageSeconds: number) => {
    writeFileSync(runtime, JSON.stringify({ pid, socket: socketPath, state: 'starting' }))
    const then = statSync(runtime).mtimeMs / 1000 - ageSeconds
    utimesSync(runtime, then, then)
    return svc(['ls'], { socketPath })
  }
  const dead = spawnSync(process.execPath, ['--version']).pid
  for (const ran of [await left(dead, 0), await left(process.pid, 60)]) {
    expect(ran).toMatchObject({ code: 4, stdout: '' })
    expect(ran.stderr).not.toContain('is starting')
  }
})

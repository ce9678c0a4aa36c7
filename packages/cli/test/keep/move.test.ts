// The real svcd does the work; how it copies, resumes and refuses is tested beside it.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { expect, it, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { Captured, type TestDaemon, testDaemon } from '../support.ts'

vi.setConfig({ testTimeout: 120_000 })

/** `svc move`, with the daemon's folder as the home folder. */
async function move({ folder, socketPath }: TestDaemon, words: readonly string[]) {
  const svcd = join(folder, 'svcd')
  writeFileSync(svcd, `#!/bin/sh\nexec '${[process.execPath, ...SVCD].join("' '")}' "$@"\n`)
  chmodSync(svcd, 0o755)
  const config = join(folder, '.config/svc/config.toml')
  mkdirSync(join(folder, '.config/svc'), { recursive: true })
  if (!existsSync(config)) writeFileSync(config, '[store]\nroot = "~/root"\n')
  const [stdout, stderr] = [new Captured('utf8'), new Captured('utf8')]
  const env = {
    HOME: folder,
    PATH: process.env.PATH,
    SVC_SOCKET: socketPath,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE
  }
  const args = ['move', ...words, '--svcd', svcd]
  const code = await run(
    args,
    '1.2.3',
    { stdout: stdout.output, stderr: stderr.output, cwd: folder, env },
    new AbortController().signal
  )
  return { code, stdout: stdout.text, stderr: stderr.text, config: readFileSync(config, 'utf8') }
}

it('svc move refuses while a daemon runs, then moves, and reports the state of the old store', async () => {
  const daemon = await testDaemon()
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0' } })
  expect(await daemon.svc('import', 'local', 'Tiny', '--as', 'acme/tiny', '--quiet')).toMatchObject({ code: 0 })
  const busy = await move(daemon, ['new'])
  expect(busy).toMatchObject({ code: 1, stdout: '', config: '[store]\nroot = "~/root"\n' })
  expect(busy.stderr).toContain(`kill ${process.pid}`)
  expect(existsSync(join(daemon.folder, 'new'))).toBe(false)

  await daemon.pause()
  const inside = await move(daemon, ['root/inside', '--new', '--json'])
  expect(inside).toMatchObject({ code: 2, stdout: '' })
  expect(JSON.parse(inside.stderr).error.message).toContain(daemon.root)

  const moved = await move(daemon, ['new'])
  const to = join(daemon.folder, 'new')
  expect(moved).toMatchObject({ code: 0, config: `[store]\nroot = "${to}"\n` })
  expect(moved.stdout).toContain(to)
  expect(existsSync(join(daemon.root, 'format'))).toBe(true)
})

// The real svcd restores; how blobs are verified and what is refused is tested beside it.
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { expect, it, vi } from 'vitest'
import { run } from '../../src/run.ts'
import { Captured, type Ran, type TestDaemon, testDaemon } from '../support.ts'

vi.setConfig({ testTimeout: 120_000 })

/** `svc restore`, with the daemon's folder as the home folder. */
async function restore({ folder, socketPath }: TestDaemon, ...words: string[]): Promise<Ran> {
  const svcd = join(folder, 'svcd')
  writeFileSync(svcd, `#!/bin/sh\nexec '${[process.execPath, ...SVCD].join("' '")}' "$@"\n`)
  chmodSync(svcd, 0o755)
  const [stdout, stderr] = [new Captured('utf8'), new Captured('utf8')]
  const env = {
    HOME: folder,
    PATH: process.env.PATH,
    SVC_SOCKET: socketPath,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE
  }
  const args = ['restore', ...words, '--svcd', svcd]
  const code = await run(
    args,
    '1.2.3',
    { stdout: stdout.output, stderr: stderr.output, cwd: folder, env },
    new AbortController().signal
  )
  return { code, stdout: stdout.text, stderr: stderr.text }
}

it('a backup to a folder restores the store; a damaged one exits with 5 and names the file', async () => {
  const daemon = await testDaemon()
  makeModelFolder(join(daemon.folder, 'Tiny'), { ggufs: { q8_0: 'Q8_0' } })
  expect(await daemon.svc('import', 'local', 'Tiny', '--as', 'acme/tiny', '--quiet')).toMatchObject({ code: 0 })
  const id = readFileSync(join(daemon.root, 'id'), 'utf8').trim()
  const first = await daemon.svc('backup', 'saved')
  expect(first).toMatchObject({ code: 0 })
  expect(first.stdout).toContain(id)
  const again = JSON.parse((await daemon.svc('backup', 'saved', '--json')).stdout)
  expect(again).toMatchObject({ storeId: id, sentBlobs: 0, sentBytes: 0 })
  expect(again.blobs).toBeGreaterThan(3)

  expect(await daemon.svc('backup', 'root/inside')).toMatchObject({ code: 2 })
  expect(existsSync(join(daemon.root, 'inside'))).toBe(false)
  expect(await daemon.svc('backup', 'ftp://example/x')).toMatchObject({ code: 2 })

  const back = await restore(daemon, 'saved', '--root', 'new', '--json')
  expect(back).toMatchObject({ code: 0 })
  expect(JSON.parse(back.stdout)).toMatchObject({ storeId: id, blobs: again.blobs, damaged: [] })
  expect(existsSync(join(daemon.folder, 'new/state/repos/acme/tiny.json'))).toBe(true)
  expect(await restore(daemon, 'saved', '--root', 'new')).toMatchObject({ code: 2, stdout: '' })
  expect(await restore(daemon, 'nowhere', '--root', 'newer')).toMatchObject({ code: 2 })

  const { files } = JSON.parse((await daemon.svc('show', 'acme/tiny:q8_0', '--json')).stdout)
  const hex = files[0].digest.slice('sha256:'.length)
  const key = `blobs/sha256/${hex.slice(0, 2)}/${hex.slice(2)}`
  chmodSync(join(daemon.folder, 'saved', key), 0o600)
  rmSync(join(daemon.folder, 'saved', key))
  mkdirSync(join(daemon.folder, 'other'))
  const damaged = await restore(daemon, 'saved', '--root', 'other')
  expect(damaged).toMatchObject({ code: 5, stdout: '' })
  expect(damaged.stderr).toContain(key)
  expect(await restore(daemon, 'saved', '--root', 'other', '--incomplete')).toMatchObject({ code: 0 })
})

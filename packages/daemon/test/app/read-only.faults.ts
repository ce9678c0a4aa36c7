// A file system that is mounted read-only, as root on a tmpfs and on mounts of the test's own: the true error, whatever is tried.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeFolders, nodeFilePort } from '@svc/internal-files'
import { expect, it, onTestFinished } from 'vitest'
import { startDaemon } from '../../src/index.ts'
import { testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const isRoot = process.getuid?.() === 0

/** A read-only tmpfs. */
function readOnlyDisk(): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-ro-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700,ro', 'tmpfs', path])
  onTestFinished(() => {
    execFileSync('umount', ['-l', path])
    rmSync(path, { recursive: true, force: true })
  })
  return path
}

function causesOf(error: unknown): string[] {
  const codes: string[] = []
  for (let at = error as (Error & { code?: string }) | undefined; at !== undefined; at = at.cause as typeof at)
    codes.push(`${at.code} ${at.message}`)
  return codes
}

it.runIf(isRoot)('on a read-only disk a new store and a new folder are refused with EROFS', async () => {
  const path = readOnlyDisk()
  const sockets = mkdtempSync(join(tmpdir(), 'svc-ro-socket-'))
  onTestFinished(() => rmSync(sockets, { recursive: true }))
  await expect(makeFolders(join(path, 'a/b/c'), 0o700, nodeFilePort)).rejects.toMatchObject({ code: 'EROFS' })
  const started = startDaemon({
    root: join(path, 'some/where/store'),
    socketPath: join(sockets, 's'),
    fileConfig: { swarm: { enabled: false } }
  })
  const error = await started.then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  expect(causesOf(error).join()).toContain('EROFS')
  expect(causesOf(error).join()).not.toContain('ENOENT')
})

/** Makes folders of a store read-only in their places: its own mount is busy while the daemon runs. */
function lock(root: string): () => void {
  const undo: (() => void)[] = []
  for (const name of ['state', 'blobs', 'incoming', 'views']) {
    const path = join(root, name)
    mkdirSync(path, { recursive: true, mode: 0o700 })
    execFileSync('mount', ['--bind', path, path])
    undo.push(() => void execFileSync('umount', ['-l', path]))
    execFileSync('mount', ['-o', 'remount,bind,ro', path])
  }
  return () => {
    for (const work of undo.splice(0)) work()
  }
}

it.runIf(isRoot)(
  'below a running daemon: each write fails with EROFS, and everything works again afterwards',
  async () => {
    const work = mkdtempSync(join(tmpdir(), 'svc-ro-work-'))
    onTestFinished(() => rmSync(work, { recursive: true }))
    const daemon = await testDaemon()
    const model = writeFiles(join(work, 'model'), { 'm-q8_0.gguf': gguf(1 << 20) })
    await daemon.import([model])
    const other = writeFiles(join(work, 'other'), { 'o-q8_0.gguf': gguf(1 << 20, 7), 'x.jinja': 'x' })
    const unlock = lock(daemon.root)
    onTestFinished(unlock)
    const imported = await daemon.import([other], 'me/other')
    expect(imported).toMatchObject({ state: 'failed', error: { code: 'E_INTERNAL' } })
    const ref = 'svc:///me/model:q8_0'
    const answers = [
      imported.error,
      (await daemon.post('/v1/views', { ref, layout: 'files' })).body,
      (await daemon.call('PUT', '/v1/private', { body: { ref, private: true } })).body,
      (await daemon.call('DELETE', '/v1/models/me/model')).body
    ]
    for (const answer of answers) {
      expect(JSON.stringify(answer)).toContain('EROFS')
      expect(JSON.stringify(answer)).not.toContain('ENOENT')
    }
    unlock()
    expect((await daemon.import([other], 'me/other')).state).toBe('done')
  }
)

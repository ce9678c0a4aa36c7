// A backup in a bucket of a real S3 server: OpenStack Swift, which checks signatures, clocks and parts.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { haveS3Server, startS3Server } from '@svc/testkit/s3-server'
import { expect, it, onTestFinished } from 'vitest'
import { svc, testDaemon } from '../support.ts'

/** SHA-256 of every file below a folder, by path. */
function hashesIn(folder: string): Readonly<Record<string, string>> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    entries.map(({ parentPath, name }) => {
      const path = join(parentPath, name)
      return [path.slice(folder.length), createHash('sha256').update(readFileSync(path)).digest('hex')]
    })
  )
}

it.skipIf(!haveS3Server)(
  'a backup in a bucket grows by what is new, and restores byte for byte',
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'svc-bucket-'))
    onTestFinished(() => rmSync(scratch, { recursive: true, force: true }))
    const server = await startS3Server(join(scratch, 's3'))
    onTestFinished(() => server.stop())
    const daemon = await testDaemon()
    const backup = async (...words: string[]) => {
      const args = ['backup', `s3://${server.bucket}/deep/saved`, '--json', ...words]
      const ran = await svc(args, { socketPath: daemon.socketPath, cwd: daemon.folder, env: server.env })
      expect(ran, ran.stderr).toMatchObject({ code: 0 })
      return JSON.parse(ran.stdout)
    }
    makeModelFolder(join(daemon.folder, 'One'), { ggufs: { q8_0: 'Q8_0' } })
    expect(await daemon.svc('import', 'local', 'One', '--as', 'acme/one', '--private', '--quiet')).toMatchObject({
      code: 0
    })
    const first = await backup()
    expect(first.sentBlobs).toBe(first.blobs)
    expect(await backup('--verify')).toMatchObject({ sentBlobs: 0 })
    makeModelFolder(join(daemon.folder, 'Two'), { ggufs: { q4_k_m: 'Q4_K' } })
    expect(await daemon.svc('import', 'local', 'Two', '--as', 'acme/two', '--quiet')).toMatchObject({ code: 0 })
    expect(await daemon.svc('rm', 'acme/one', '--quiet')).toMatchObject({ code: 0 })
    expect((await backup('--prune')).prunedBlobs).toBeGreaterThan(0)

    const root = join(scratch, 'root')
    const src = `s3://${server.bucket}/deep/saved`
    const ran = spawnSync(process.execPath, [...SVCD, 'restore', src, '--root', root, '--json'], {
      env: { ...process.env, ...server.env, HOME: scratch },
      encoding: 'utf8'
    })
    expect(ran.status, ran.stderr).toBe(0)
    for (const folder of ['state', 'blobs']) {
      const [back, there] = [hashesIn(join(root, folder)), hashesIn(join(daemon.root, folder))]
      // what the backup has no bytes of is nobody's word, so the records of removed models change
      if (folder === 'state') expect(Object.keys(back).sort()).toEqual(Object.keys(there).sort())
      // files that nothing needs any more were not part of it
      else for (const [path, hash] of Object.entries(back)) expect(there[path]).toBe(hash)
    }
  },
  120_000
)

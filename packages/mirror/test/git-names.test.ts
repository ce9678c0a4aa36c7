import { createHash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDigest } from '@svc/ref'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../../daemon/test/support/daemon.ts'
import { GitNames } from '../src/git-names.ts'
import type { ServedFile } from '../src/served-files.ts'

const digest = parseDigest(`sha256:${'a'.repeat(64)}`)
const fileOf = (path: string, bytes: Buffer): ServedFile => ({
  manifest: digest,
  name: 'tokenizer.json',
  sizeBytes: bytes.length,
  digest: parseDigest(`sha256:${createHash('sha256').update(bytes).digest('hex')}`),
  isBlob: false,
  path,
  kind: 'tokenizer',
  role: undefined
})

it('git names are those of git, for files of any length', async () => {
  const folder = temporaryFolder()
  const names = new GitNames()
  for (const sizeBytes of [0, 1, 262_144, 262_145, 600_000]) {
    const bytes = Buffer.alloc(sizeBytes, sizeBytes)
    const path = join(folder, `${sizeBytes}`)
    writeFileSync(path, bytes)
    const wanted = createHash('sha1').update(`blob ${sizeBytes}\0`).update(bytes).digest('hex')
    expect(await names.of(fileOf(path, bytes))).toBe(wanted)
  }
})

it('git names are computed once for concurrent requests, and again if the file was absent', async () => {
  const bytes = Buffer.alloc(1_000_000, 'x')
  const path = join(temporaryFolder(), 'tokenizer.json')
  const names = new GitNames()
  const file = fileOf(path, bytes)
  await expect(names.of(file)).rejects.toMatchObject({ code: 'ENOENT' })
  writeFileSync(path, bytes)
  const all = Array.from({ length: 500 }, () => names.of(file))
  const first = await Promise.race(all)
  // a second read would not find it
  rmSync(path)
  expect(first).toHaveLength(40)
  expect(new Set(await Promise.all(all))).toEqual(new Set([first]))
})

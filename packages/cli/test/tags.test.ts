// The owner's tags: set by `svcd tag`, used by `svc`.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { expect, it } from 'vitest'
import { testDaemon } from './support.ts'

it('a tag keeps its snapshot selectable', { timeout: 60_000 }, async () => {
  const daemon = await testDaemon()
  const { folder, root, svc } = daemon
  // Without a daemon to ask, so that the process may block this one: it takes the lock itself.
  const tag = async (...words: string[]): Promise<string> => {
    await daemon.pause()
    const args = [...SVCD, 'tag', ...words, '--root', root, '--socket', join(folder, 's.sock')]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    await daemon.resume()
    return stdout
  }
  makeModelFolder(join(folder, 'one'), { ggufs: { q8_0: 'Q8_0' }, files: { 'model.safetensors': undefined } })
  makeModelFolder(join(folder, 'two'), { ggufs: { q4_0: 'Q4_0' }, files: { 'model.safetensors': undefined } })
  expect((await svc('import', 'local', 'one', '--as', 'acme/tiny')).code).toBe(0)
  await tag('set', 'acme/tiny:v1')
  expect((await svc('import', 'local', 'two', '--as', 'acme/tiny')).code).toBe(0)

  const now = await svc('resolve', 'acme/tiny:q8_0', '--json')
  const then = await svc('resolve', 'acme/tiny:v1+q8', '--json')
  expect(JSON.parse(then.stdout).manifestDigest).toBe(JSON.parse(now.stdout).manifestDigest)
  expect(JSON.parse(then.stdout).indexDigest).not.toBe(JSON.parse(now.stdout).indexDigest)
  expect((await svc('path', 'acme/tiny:q4_0')).code).toBe(0)
  expect(JSON.parse((await svc('path', 'acme/tiny:v1+q4_0', '--json')).stderr).error.code).toBe('E_NO_MEMBER')
  expect((await svc('ls')).stdout).toMatch(/^acme\/tiny:q4_0 .* v1\nacme\/tiny:q8_0 .* v1$/m)
  expect((await svc('show', 'acme/tiny')).stdout).toMatch(/^tag v1, an older version: acme\/tiny:v1\+QUANT$/m)

  expect(await tag('ls', 'acme/tiny')).toMatch(/^acme\/tiny:v1 sha256:[0-9a-f]{64}\n$/)
  await tag('rm', 'acme/tiny:v1')
  expect((await svc('resolve', 'acme/tiny:v1+q8_0')).code).toBe(3)
})

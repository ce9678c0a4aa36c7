// The owner's tags: set by `svc tag` and `svcd tag`, used by `svc`.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { makeModelFolder } from '@svc/testkit/models'
import { SVCD } from '@svc/testkit/programs'
import { expect, it } from 'vitest'
import { testDaemon } from './support.ts'

it('a tag keeps its snapshot selectable', { timeout: 60_000 }, async () => {
  const daemon = await testDaemon()
  const { folder, root, svc } = daemon
  // without a daemon to ask, so that the process may block this one: it takes the lock itself.
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

it('svc tag sets, lists and removes tags, in both of its forms', { timeout: 60_000 }, async () => {
  const { folder, svc } = await testDaemon()
  const out = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await svc('tag', ...words)
    expect([words, code, stderr]).toEqual([words, 0, ''])
    return stdout
  }
  const code = async (...words: string[]): Promise<number | null> => (await svc('tag', ...words)).code
  const indexOf = async (ref: string): Promise<string> =>
    JSON.parse((await svc('resolve', ref, '--json')).stdout).indexDigest
  for (const [name, quant, type] of [
    ['one', 'q8_0', 'Q8_0'],
    ['two', 'q4_0', 'Q4_0']
  ] as const) {
    makeModelFolder(join(folder, name), { ggufs: { [quant]: type } })
    expect((await svc('import', 'local', name, '--as', 'acme/tiny')).code).toBe(0)
    await out('acme/tiny', name)
  }
  const [one, two] = [await indexOf('acme/tiny:one+q8_0'), await indexOf('acme/tiny:q4_0')]
  expect(one).not.toBe(two)
  const both = `acme/tiny:one ${one}\nacme/tiny:two ${two}\n`
  for (const words of [[], ['--ls'], ['ls'], ['acme/tiny'], ['--ls', 'Acme/Tiny'], ['ls', 'tiny']])
    expect([words, await out(...words)]).toEqual([words, both])
  expect(JSON.parse(await out('--json'))).toMatchObject({ tags: [{ repo: 'acme/tiny', tag: 'one', digest: one }, {}] })

  // by an older tag, by a reference to a quant, by the digest
  expect(await out('acme/tiny:one+q8', 'old')).toBe(`acme/tiny:old ${one}\n`)
  expect(await out('tiny:q4', 'new')).toBe(`acme/tiny:new ${two}\n`)
  expect(await out('set', 'acme/tiny:Same', one)).toBe(`acme/tiny:Same ${one}\n`)
  expect(await out('set', 'acme/tiny:old')).toBe(`acme/tiny:old ${two}\n`)
  expect(await out('--rm', 'acme/tiny', 'old')).toBe(`removed acme/tiny:old ${two}\n`)
  expect(await out('--rm', 'acme/tiny:new')).toBe(`removed acme/tiny:new ${two}\n`)
  expect(await out('rm', 'svc:///acme/tiny:Same')).toBe(`removed acme/tiny:Same ${one}\n`)
  expect(await out('ls')).toBe(both)

  for (const [words, wanted] of [
    [['rm', 'acme/tiny:nope'], 3],
    [['acme/nope', 'x'], 3],
    [['acme/tiny', 'q4_0'], 2],
    [['set', 'acme/tiny'], 2],
    [['set', 'acme/tiny:x', 'sha256:0'], 2],
    [['set', 'acme/tiny:x', `sha256:${'0'.repeat(64)}`], 3],
    [['--rm'], 2],
    [['--rm', '--ls', 'acme/tiny', 'x'], 2],
    [['--ls', 'acme/tiny', 'x'], 2]
  ] as const)
    expect([words, await code(...words)]).toEqual([words, wanted])
  const refused = await svc('rm', 'acme/tiny:one+q8_0')
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('svc tag rm acme/tiny:one')])
})

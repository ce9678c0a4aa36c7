import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tagCommand } from '../../src/commands/tag.ts'
import { testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

describe('svcd tag', () => {
  it('asks the daemon that uses the root; without a daemon it takes the lock itself', async () => {
    const api = await testDaemon()
    const job = await api.import([writeFiles(join(api.folder, 'm'), { 'm-q4_0.gguf': gguf(100) })], 'a/b')
    const index = job.result!.indexDigest!
    const tag = async (...words: string[]): Promise<string[]> => {
      const lines: string[] = []
      await tagCommand(words, { root: api.root, socketPath: api.socketPath, print: (line) => lines.push(line) })
      return lines
    }
    const code = (work: Promise<unknown>): Promise<string> =>
      work.then(
        () => 'done',
        (error: { code?: string; name: string }) => error.code ?? error.name
      )
    for (const running of [true, false]) {
      if (!running) await api.running.close({ quick: true })
      expect(await tag('set', 'a/b:v1')).toEqual([`a/b:v1 ${index}`])
      expect(await tag('set', 'a/b:V1', index)).toEqual([`a/b:V1 ${index}`])
      expect(await tag('ls')).toEqual([`a/b:V1 ${index}`, `a/b:v1 ${index}`])
      if (running) expect((await api.resolve('svc:///a/b:v1+q4_0')).body.indexDigest).toBe(index)
      expect(await code(tag('rm', 'a/b:nope'))).toBe('E_UNKNOWN_REF')
      expect(await code(tag('set', 'no/thing:v1'))).toBe('E_UNKNOWN_REF')
      expect(await code(tag('set', 'a/b:v2', `sha256:${'0'.repeat(64)}`))).toBe('E_NO_INDEX')
      for (const words of [
        ['set', 'a/b:q4_0'],
        ['set', 'a/b'],
        ['set', 'a/b:v2', 'x'],
        ['set', 'A/b:v2'],
        ['move'],
        ['rm'],
        ['ls', 'x']
      ]) {
        expect([words, await code(tag(...words))]).toEqual([words, 'StartError'])
      }
      await tag('rm', 'a/b:v1')
      await tag('rm', 'a/b:V1')
      expect(await tag('ls', 'a/b')).toEqual([])
    }
  })
})

it('forgets a repository whose quants are gone with its last tag', async () => {
  const api = await testDaemon()
  const files = (seed: number) => [writeFiles(join(api.folder, `m${seed}`), { 'm-q4_0.gguf': gguf(100, seed) })]
  await api.import(files(1), 'a/b')
  const change = { root: api.root, ns: 'a', name: 'b', tag: 'old' }
  expect((await api.post('/svcd/tag', { ...change, index: 'current' })).status).toBe(200)
  // the tag is now an older snapshot, and stays where the repository goes
  await api.import(files(2), 'a/b')
  expect((await api.call('DELETE', '/v1/models/a/b')).body.tags).toEqual([])
  expect((await api.post('/svcd/tag', { ...change, index: null })).status).toBe(200)
  expect((await api.resolve('svc:///a/b:q4_0')).body.error.code).toBe('E_UNKNOWN_REF')
  expect((await api.get('/v1/models')).body).toMatchObject({ namespaces: [], tags: [] })
  expect((await api.import(files(3), 'a/b')).state).toBe('done')
})

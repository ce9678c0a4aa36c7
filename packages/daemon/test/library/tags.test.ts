import { writeFileSync } from 'node:fs'
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
      await tagCommand(words, {
        store: { root: api.root },
        socketPath: api.socketPath,
        print: (line) => lines.push(line)
      })
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
  expect((await api.call('PUT', '/v1/tags/a/b/old', { body: {} })).status).toBe(200)
  // the tag is now an older snapshot, and stays where the repository goes
  await api.import(files(2), 'a/b')
  expect((await api.call('DELETE', '/v1/models/a/b')).body.tags).toEqual([])
  expect((await api.call('DELETE', '/v1/tags/a/b/old')).status).toBe(200)
  expect((await api.resolve('svc:///a/b:q4_0')).body.error.code).toBe('E_UNKNOWN_REF')
  expect((await api.get('/v1/models')).body).toMatchObject({ namespaces: [], tags: [] })
  expect((await api.import(files(3), 'a/b')).state).toBe('done')
})

describe('the routes of tags (spec route.34)', () => {
  it('set, list, read and remove a tag; each refusal has its code', async () => {
    const api = await testDaemon()
    const files = (seed: number) => [writeFiles(join(api.folder, `m${seed}`), { 'm-q4_0.gguf': gguf(100, seed) })]
    const first = (await api.import(files(1), 'a/b')).result!.indexDigest!
    const put = (path: string, body: object = {}) => api.call('PUT', `/v1/tags/${path}`, { body })
    const stable = { repo: 'a/b', tag: 'stable', digest: first, blobPresent: true }
    expect(await put('a/b/stable')).toMatchObject({ status: 200, body: stable })
    const second = (await api.import(files(2), 'a/b')).result!.indexDigest!
    expect(second).not.toBe(first)
    expect((await put('a/b/Next')).body).toEqual({ ...stable, tag: 'Next', digest: second })
    expect((await put('a/b/back', { digest: first })).body.digest).toBe(first)
    expect((await api.get('/v1/tags/a/b/stable')).body).toEqual(stable)
    expect((await api.resolve('svc:///a/b:stable+q4_0')).body.indexDigest).toBe(first)
    // it moves
    expect((await put('a/b/stable')).body.digest).toBe(second)

    await api.import(files(3), 'c/d')
    await put('c/d/x.y-z_1')
    const listed = async (query = '') =>
      (await api.get(`/v1/tags${query}`)).body.tags.map(
        ({ repo, tag }: { repo: string; tag: string }) => `${repo}:${tag}`
      )
    expect(await listed()).toEqual(['a/b:Next', 'a/b:back', 'a/b:stable', 'c/d:x.y-z_1'])
    expect(await listed('?repo=a/b')).toEqual(['a/b:Next', 'a/b:back', 'a/b:stable'])
    expect(await listed('?repo=no/thing')).toEqual([])
    expect((await api.get('/v1/models')).body.tags).toEqual((await api.get('/v1/tags')).body.tags)

    expect((await api.call('DELETE', '/v1/tags/a/b/back')).body).toEqual({ ...stable, tag: 'back' })
    expect(await listed('?repo=a/b')).toEqual(['a/b:Next', 'a/b:stable'])
    for (const [method, path, body, status, code] of [
      ['GET', 'a/b/nope', undefined, 404, 'E_UNKNOWN_REF'],
      ['DELETE', 'a/b/nope', undefined, 404, 'E_UNKNOWN_REF'],
      ['DELETE', 'no/thing/x', undefined, 404, 'E_UNKNOWN_REF'],
      ['PUT', 'no/thing/x', {}, 404, 'E_UNKNOWN_REF'],
      ['PUT', 'a/b/q4_0', {}, 400, 'E_PARSE'],
      ['PUT', 'a/b/sha256-1', {}, 400, 'E_PARSE'],
      ['GET', 'a/b/..%2Fx', undefined, 400, 'E_PARSE'],
      ['PUT', `a/b/${'t'.repeat(129)}`, {}, 400, 'E_PARSE'],
      ['PUT', 'A/b/x', {}, 400, 'E_BAD_REQUEST'],
      ['PUT', 'a/b/x', { digest: 'x' }, 400, 'E_BAD_REQUEST'],
      ['PUT', 'a/b/x', { digest: 7 }, 400, 'E_BAD_REQUEST'],
      ['PUT', 'a/b/x', { digest: `sha256:${'0'.repeat(64)}` }, 404, 'E_NO_INDEX'],
      ['POST', 'a/b/x', {}, 405, 'E_METHOD_NOT_ALLOWED']
    ] as const) {
      const answer = await api.call(method, `/v1/tags/${path}`, body && { body })
      expect([method, path, answer.status, answer.body.error.code]).toEqual([method, path, status, code])
    }
    expect((await api.get('/v1/tags/a/b/nope')).body.error.candidates).toEqual(['Next', 'stable'])
    expect((await api.get('/v1/tags?repo=a')).body.error.code).toBe('E_BAD_REQUEST')
    expect((await api.get('/v1/tags?repo=a/b/c')).body.error.code).toBe('E_BAD_REQUEST')
  })

  it('svcd tag asks only the daemon of its root', async () => {
    const [mine, other] = [await testDaemon(), await testDaemon()]
    for (const api of [mine, other])
      await api.import([writeFiles(join(api.folder, 'm'), { 'm-q4_0.gguf': gguf(100) })], 'a/b')
    const set = tagCommand(['set', 'a/b:v1'], {
      store: { root: mine.root },
      socketPath: other.socketPath,
      print: () => undefined
    })
    await expect(set).rejects.toThrow(other.root)
    for (const api of [mine, other]) expect((await api.get('/v1/tags')).body).toEqual({ tags: [] })
  })

  it('a record that cannot be read is named beside the tags of the others, and is an error of its own', async () => {
    const api = await testDaemon()
    for (const as of ['a/b', 'c/d']) {
      await api.import([writeFiles(join(api.folder, 'm'), { 'm-q4_0.gguf': gguf(100) })], as)
      await api.call('PUT', `/v1/tags/${as}/v1`, { body: {} })
    }
    writeFileSync(join(api.root, 'state/repos/a/b.json'), '{')
    const { body } = await api.get('/v1/tags')
    expect(body).toMatchObject({ tags: [{ repo: 'c/d' }], damaged: [{ file: 'state/repos/a/b.json' }] })
    for (const path of ['/v1/tags?repo=a/b', '/v1/tags/a/b/v1'])
      expect((await api.get(path)).body.error.code).toBe('E_INTERNAL')
  })
})

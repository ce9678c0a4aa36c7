import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { parseIndex, parseManifest, parseRecord } from '@svc/manifest'
import { describe, expect, it } from 'vitest'
import type { FileHere } from '../../../library/src/import/source.ts'
import { toolsHere } from '../../../library/src/local/downloads.ts'
import { localSource } from '../../../library/src/local/source.ts'
import { sharedByFile, type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, MODEL, safetensors, writeFiles } from '../support/models.ts'
import { expectOpenCounted } from '../support/open-jobs.ts'

const shared = sharedByFile((cleanUp) => testDaemon({}, cleanUp))
const blobPath = (api: TestDaemon, digest: string): string =>
  join(api.root, 'blobs/sha256', digest.slice(7, 9), digest.slice(9))
const blobs = (api: TestDaemon): string[] =>
  readdirSync(join(api.root, 'blobs/sha256'))
    .flatMap((shard) => readdirSync(join(api.root, 'blobs/sha256', shard)).map((rest) => shard + rest))
    .sort()
const stateFiles = (api: TestDaemon): string[] =>
  readdirSync(join(api.root, 'state'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.json'))
    .sort()

describe('the result of an import', () => {
  it('seals weights, tokenizer, template, code, licence and config', async () => {
    const api = await shared()
    const folder = writeFiles(temporaryFolder(), MODEL)
    const { status, body } = await api.post('/v1/import/local', { paths: [folder], as: 'sealed/model' })
    expect([status, body.kind, body.state, body.as, body.ref, body.filesTotal]).toEqual([
      201,
      'import-local',
      'waiting',
      'sealed/model',
      'sealed/model',
      10
    ])
    const job = await api.finished(body)
    expect(job).toMatchObject({
      state: 'done',
      filesDone: 10,
      filesTotal: 10,
      result: { quants: ['bf16', 'q8_0'], skipped: 2 }
    })
    expect(job.bytesDone).toBe(job.bytesTotal)
    expect(job.files).toBeUndefined()
    expect(job.manifest).toBe(job.result!.manifests[0])

    const index = parseIndex(readFileSync(blobPath(api, job.result!.indexDigest!)))
    expect(index.members.map((member) => [member.quant, member.manifest])).toEqual([
      ['bf16', job.result!.manifests[0]],
      ['q8_0', job.result!.manifests[1]]
    ])
    for (const member of index.members) {
      const manifest = parseManifest(readFileSync(blobPath(api, member.manifest)))
      expect(manifest.annotations['svc.license']).toMatch(/^LicenseRef-sha256-/)
      expect(manifest.annotations['svc.license.file.LICENSE']).toBe(MODEL.LICENSE)
      const record = parseRecord(readFileSync(blobPath(api, member.distribution)))
      expect(record.manifestDigest).toBe(member.manifest)
      expect(existsSync(blobPath(api, record.torrent.pieceLayersDigest))).toBe(true)
    }
    expect(
      JSON.parse(readFileSync(join(api.root, 'state/artifacts', `${job.result!.manifests[0]!.slice(7)}.json`), 'utf8'))
    ).toMatchObject({
      record: index.members[0]!.distribution,
      source: { kind: 'local' },
      provenance: { access: 'own' }
    })
    expect((await api.verify('all')).state).toBe('done')
  })

  it('gives the same digests for any order, times, path layout and name', async () => {
    const api = await shared()
    const one = writeFiles(temporaryFolder(), MODEL)
    const other = writeFiles(temporaryFolder(), Object.fromEntries(Object.entries(MODEL).reverse()))
    for (const name of Object.keys(MODEL)) utimesSync(join(other, name), 1, 1)
    const first = await api.import([one], 'converge/one')
    const second = await api.import([other], 'converge/two')
    const flat = Object.keys(MODEL)
      .filter((name) => !name.includes('/'))
      .map((name) => join(other, name))
    const third = await api.import(flat.reverse(), 'converge/three')
    expect(second.result).toEqual(first.result)
    expect(third.result!.indexDigest).toBe(first.result!.indexDigest)
    const before = blobs(api)
    expect((await api.import([one], 'converge/one')).result).toEqual(first.result)
    expect(blobs(api)).toEqual(before)
  })

  it('merges into an index, replacing members of the same quant', async () => {
    const api = await shared()
    await api.import([writeFiles(temporaryFolder(), { 'a-q4_0.gguf': gguf(10, 1) })], 'merge/me')
    const second = await api.import([writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(10, 2) })], 'merge/me')
    const third = await api.import([writeFiles(temporaryFolder(), { 'a-q4_0.gguf': gguf(10, 3) })], 'merge/me')
    expect((await api.resolve('svc:///merge/me:q8_0')).body.manifestDigest).toBe(second.manifest)
    expect((await api.resolve('svc:///merge/me:q4_0')).body.manifestDigest).toBe(third.manifest)
  })

  it('allows two concurrent imports of the same bytes, and many into one name', async () => {
    const api = await testDaemon()
    const folder = writeFiles(temporaryFolder(), MODEL)
    const same = await Promise.all(Array.from({ length: 6 }, (_, i) => api.import([folder], `twin/t${i % 2}`)))
    expect(new Set(same.map((job) => JSON.stringify(job.result))).size).toBe(1)
    const quants = ['q2_k', 'q3_k', 'q4_0', 'q4_k_m', 'q5_0', 'q6_k', 'q8_0']
    const jobs = await Promise.all(
      quants.map((quant, i) =>
        api.import([writeFiles(temporaryFolder(), { [`m-${quant}.gguf`]: gguf(100, i) })], 'race/all')
      )
    )
    expect(jobs.map((job) => job.state)).toEqual(quants.map(() => 'done'))
    const models = (await api.get('/v1/models')).body.namespaces.find((entry: { ns: string }) => entry.ns === 'race')
    expect(models.quants).toEqual(quants)
    expect((await api.verify('all')).state).toBe('done')
    expectOpenCounted(api.running.context.jobs)
  })

  it('takes fifty imports of one file at once, while everything is verified', async () => {
    const api = await shared()
    const file = join(writeFiles(temporaryFolder(), { 'm-q6_k.gguf': gguf(300_000, 50) }), 'm-q6_k.gguf')
    const [verified, ...jobs] = await Promise.all([
      api.verify('all'),
      ...Array.from({ length: 50 }, (_, i) => api.import([file], `fifty/n${i}`))
    ])
    expect(verified!.state).toBe('done')
    expect(new Set(jobs.map((job) => `${job.state} ${job.result?.indexDigest}`)).size).toBe(1)
    expect(jobs[0]!.state).toBe('done')
    expect((await api.verify(jobs[0]!.manifest!)).state).toBe('done')
  })

  it('keeps tags on a merge', async () => {
    const api = await testDaemon()
    const first = await api.import([writeFiles(temporaryFolder(), { 'a-q4_0.gguf': gguf(10, 1) })], 'me/m')
    await api.running.context.repos.update({ ns: 'me', name: 'm' }, async (state) => ({
      ...state!,
      tags: new Map([['v1', state!.index!]])
    }))
    await api.import([writeFiles(temporaryFolder(), { 'a-q4_0.gguf': gguf(10, 2) })], 'me/m')
    expect((await api.resolve('svc:///me/m:v1+q4_0')).body.manifestDigest).toBe(first.manifest)
  })

  it('stores weights with an unreadable header, with a warning', async () => {
    const api = await shared()
    const job = await api.import(
      [
        writeFiles(temporaryFolder(), {
          'a.safetensors': '<!doctype html><html>',
          'b-q4_0.gguf': 'version https://git-lfs.github.com/spec/v1\n'
        })
      ],
      'odd/heads'
    )
    expect(job.result!.quants).toEqual(['q4_0', 'raw'])
    expect(job.result!.warnings!.filter((warning) => warning.includes('header'))).toHaveLength(2)
  })

  it('imports empty files and a file of an exact block', async () => {
    const api = await shared()
    const job = await api.import(
      [writeFiles(temporaryFolder(), { 'a-q4_0.gguf': '', 'b-q4_0.gguf': gguf(16_384 - 24) })],
      'empty/file'
    )
    expect(job.state).toBe('done')
    expect(
      (await api.open('svc:///empty/file:q4_0')).body.files.map((file: { size: number }) => file.size).slice(3)
    ).toEqual([0, 16_384])
    const empty = (await api.open('svc:///empty/file:q4_0')).body.files[3].digest
    expect((await api.get(`/v1/blob/${empty}`)).bytes).toHaveLength(0)
  })

  it('refuses a repository without weights, as a job, and stores nothing', async () => {
    const api = await testDaemon()
    const job = await api.import([writeFiles(temporaryFolder(), { 'tokenizer.json': '{}', 'config.json': '{}' })])
    expect([job.state, job.error!.code]).toEqual(['failed', 'E_NOT_IMPORTABLE'])
    expect((await api.import([temporaryFolder()])).error!.code).toBe('E_NOT_IMPORTABLE')
    expect([blobs(api), stateFiles(api)]).toEqual([[], []])
  })

  it('does not change the state when the current index is corrupt or missing', async () => {
    const api = await testDaemon()
    const job = await api.import([writeFiles(temporaryFolder(), { 'a-q4_0.gguf': gguf(10, 1) })], 'me/m')
    const path = join(api.root, 'state/repos/me/m.json')
    const before = readFileSync(path)
    const more = writeFiles(temporaryFolder(), { 'a-q8_0.gguf': gguf(10, 2) })
    rmSync(blobPath(api, job.result!.indexDigest!))
    expect((await api.import([more], 'me/m')).error!.code).toBe('E_INVALID_INDEX')
    writeFileSync(blobPath(api, job.result!.indexDigest!), '{}')
    expect((await api.import([more], 'me/m')).error!.code).toBe('E_INVALID_INDEX')
    expect(readFileSync(path)).toEqual(before)
  })
})

describe('requests that are refused', () => {
  it.each([
    ['relative path', { paths: ['x'], as: 'a/b' }],
    ['no such path', { paths: ['/no/such/path'], as: 'a/b' }],
    ['no paths', { paths: [], as: 'a/b' }],
    ['paths is a string', { paths: '/tmp', as: 'a/b' }],
    ['no as', { paths: ['/tmp'] }],
    ['as without a slash', { paths: ['/tmp'], as: 'ab' }],
    ['as with two slashes', { paths: ['/tmp'], as: 'a/b/c' }],
    ['as in upper case', { paths: ['/tmp'], as: 'A/b' }],
    ['as with a quant', { paths: ['/tmp'], as: 'a/b:q4_0' }],
    ['as into library', { paths: ['/tmp'], as: 'library/b' }],
    ['as into svc', { paths: ['/tmp'], as: 'svc/b' }],
    ['dot segments', { paths: ['/tmp/../tmp'], as: 'a/b' }],
    ['a NUL', { paths: ['/tmp/\0'], as: 'a/b' }],
    ['a long path', { paths: [`/${'x'.repeat(5000)}`], as: 'a/b' }],
    ['a long name', { paths: [`/${'x'.repeat(300)}`], as: 'a/b' }]
  ])('%s', async (_name, request) => {
    const { status, body } = await (await shared()).post('/v1/import/local', request)
    expect([status, body.error.code]).toEqual([400, 'E_BAD_REQUEST'])
  })

  it('names that collide, are not UTF-8, or hold forbidden characters', async () => {
    const api = await shared()
    const folder = writeFiles(temporaryFolder(), { 'a/m.gguf': gguf(1), 'b/m.gguf': gguf(1) })
    const twice = await api.post('/v1/import/local', {
      paths: [join(folder, 'a/m.gguf'), join(folder, 'b/m.gguf')],
      as: 'a/b'
    })
    expect([twice.status, twice.body.error.code]).toEqual([400, 'E_BAD_REQUEST'])
    const same = await api.post('/v1/import/local', { paths: [join(folder, 'a'), join(folder, 'b')], as: 'a/b' })
    expect(same.body.error.code).toBe('E_BAD_REQUEST')
    for (const name of [Buffer.from([0x61, 0xff]), Buffer.from('back\\slash'), Buffer.from('new\nline')]) {
      const odd = temporaryFolder()
      writeFileSync(Buffer.concat([Buffer.from(`${odd}/`), name]), 'x')
      const { status, body } = await api.post('/v1/import/local', { paths: [odd], as: 'a/b' })
      expect([name.toString('latin1'), status, body.error.code]).toEqual([
        name.toString('latin1'),
        400,
        'E_BAD_REQUEST'
      ])
    }
    const nfc = writeFiles(temporaryFolder(), { 'caf\u00e9.gguf': gguf(1), 'cafe\u0301.gguf': gguf(1) })
    expect((await api.post('/v1/import/local', { paths: [nfc], as: 'a/b' })).body.error.code).toBe('E_BAD_REQUEST')
  })

  it('folders nested too deep', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, Array.from({ length: 70 }, () => 'd').join('/')), { recursive: true })
    expect((await (await shared()).post('/v1/import/local', { paths: [folder], as: 'a/b' })).body.error.code).toBe(
      'E_BAD_REQUEST'
    )
  })
})

describe('sources that are not regular', () => {
  const make: Record<string, (path: string, folder: string) => void | Promise<void>> = {
    'a link to a file': (path, folder) => symlinkSync(join(folder, 'm.gguf'), path),
    'a link to a folder': (path, folder) => symlinkSync(join(folder, 'sub'), path),
    'a dangling link': (path) => symlinkSync('/no/such/file', path),
    'a FIFO': (path) => void execFileSync('mkfifo', [path]),
    'a socket': (path) =>
      new Promise<void>((resolve) => {
        const server = createServer().listen(path, () => {
          renameSync(path, `${path}.kept`)
          server.close(() => {
            renameSync(`${path}.kept`, path)
            resolve()
          })
        })
      })
  }
  it.each(Object.keys(make))('%s refuses everything, and nothing is written', async (what) => {
    const api = await testDaemon()
    const folder = writeFiles(temporaryFolder(), { 'm.gguf': gguf(100), 'sub/x.txt': 'x' })
    await make[what]!(join(folder, 'sub/odd'), folder)
    for (const paths of [[folder], [join(folder, 'm.gguf'), join(folder, 'sub/odd')]]) {
      const { status, body } = await api.post('/v1/import/local', { paths, as: 'a/b' })
      expect([status, body.error.code]).toEqual([400, 'E_SOURCE_NOT_REGULAR'])
    }
    expect([blobs(api), stateFiles(api), (await api.get('/v1/jobs')).body.jobs]).toEqual([[], [], []])
  })

  it('a device and a folder behind a link', async () => {
    const api = await shared()
    const folder = writeFiles(temporaryFolder(), { 'real/m.gguf': gguf(100) })
    symlinkSync(join(folder, 'real'), join(folder, 'link'))
    for (const path of ['/dev/null', join(folder, 'link'), join(folder, 'link/m.gguf')]) {
      const { status, body } = await api.post('/v1/import/local', { paths: [path], as: 'a/b' })
      expect([path, status, body.error.code]).toEqual([path, 400, 'E_SOURCE_NOT_REGULAR'])
    }
  })
})

describe('files that change between listing and reading', () => {
  const swapped = async (change: (folder: string) => void): Promise<unknown> => {
    const folder = writeFiles(temporaryFolder(), { 'in/m.gguf': gguf(100), 'out/m.gguf': gguf(100, 9) })
    const source = await localSource([join(folder, 'in')], { as: 'me/m', tools: toolsHere() })
    change(folder)
    const [file] = source.files as readonly FileHere[]
    const opened = await file!.open(new AbortController().signal).catch((error: unknown) => error)
    if (opened instanceof Error) {
      await source.close()
      return (opened as Error & { code: string }).code
    }
    const { unchanged, close } = opened as { unchanged(): Promise<void>; close(): Promise<void> }
    appendFileSync(join(folder, 'in/m.gguf'), 'x')
    const verdict = await unchanged().then(
      () => 'unchanged',
      (error: { code: string }) => error.code
    )
    await close()
    await source.close()
    return verdict
  }
  it.each([
    [
      'the file became a link',
      (f: string) => (rmSync(join(f, 'in/m.gguf')), symlinkSync(join(f, 'out/m.gguf'), join(f, 'in/m.gguf'))),
      'E_SOURCE_NOT_REGULAR'
    ],
    [
      'the folder became a link',
      (f: string) => (renameSync(join(f, 'in'), join(f, 'old')), symlinkSync(join(f, 'out'), join(f, 'in'))),
      'E_SOURCE_NOT_REGULAR'
    ],
    [
      'the file became a FIFO',
      (f: string) => (rmSync(join(f, 'in/m.gguf')), void execFileSync('mkfifo', [join(f, 'in/m.gguf')])),
      'E_SOURCE_NOT_REGULAR'
    ],
    ['another file', (f: string) => renameSync(join(f, 'out/m.gguf'), join(f, 'in/m.gguf')), 'E_NOT_IMPORTABLE'],
    ['the file is gone', (f: string) => rmSync(join(f, 'in/m.gguf')), 'E_NOT_IMPORTABLE'],
    ['the file grew', (f: string) => appendFileSync(join(f, 'in/m.gguf'), 'x'), 'E_NOT_IMPORTABLE'],
    ['the file is written to while it is open', () => undefined, 'E_NOT_IMPORTABLE']
  ])('%s', async (_name, change, code) => {
    expect(await swapped(change as (folder: string) => void)).toBe(code)
  })

  it('a process that swaps files during imports cannot inject its own', async () => {
    const api = await testDaemon()
    const folder = writeFiles(temporaryFolder(), { 'in/m-q4_0.gguf': gguf(200_000), secret: gguf(200_000, 99) })
    const secret = readFileSync(join(folder, 'secret'))
    const file = join(folder, 'in/m-q4_0.gguf')
    let swapping = true
    const swap = (async () => {
      while (swapping) {
        renameSync(file, join(folder, 'aside'))
        symlinkSync(join(folder, 'secret'), file)
        await new Promise((resolve) => setImmediate(resolve))
        rmSync(file)
        renameSync(join(folder, 'aside'), file)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    const codes = new Set<string>()
    for (let i = 0; i < 40; i++) {
      const { status, body } = await api.post('/v1/import/local', { paths: [join(folder, 'in')], as: 'a/b' })
      if (status === 201) {
        const job = await api.finished(body)
        codes.add(job.error?.code ?? 'done')
      } else codes.add(body.error.code)
    }
    swapping = false
    await swap
    for (const code of codes)
      expect(['done', 'E_SOURCE_NOT_REGULAR', 'E_NOT_IMPORTABLE', 'E_BAD_REQUEST']).toContain(code)
    for (const hex of blobs(api)) expect(readFileSync(blobPath(api, `sha256:${hex}`)).equals(secret)).toBe(false)
  })
})

describe('a config.json that is not text', () => {
  it('is kept out with a warning', async () => {
    const api = await shared()
    const job = await api.import(
      [writeFiles(temporaryFolder(), { 'm.safetensors': safetensors(8), 'config.json': Buffer.from([0xff, 0xfe]) })],
      'bad/config'
    )
    expect([job.state, job.result!.warnings!.length]).toEqual(['done', 1])
  })
})
